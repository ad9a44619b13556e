// SPDX-License-Identifier: Apache-2.0
// Profile: a recording of `bin/sderl prof` as a time line, its processes, messages and calls.
import type { Ctx, MountedPage, Page } from "../../ui/ctx";
import type { Change } from "../../store/signals";
import { h } from "../../lib/dom";
import { count, messageOf, sentence } from "../../lib/format";
import { type Choice, choice, emptyState, searchKey } from "../../ui/parts";
import { isRecorded } from "../../ui/recorded";
import { type About, getAbout, getNumbered, type Process } from "./answers";
import { Calls } from "./calls/calls";
import { Detail } from "./processes/detail";
import { FindingsCard } from "./report/findings";
import { GroupsCard } from "./time-line/groups";
import { MessagesCard } from "./messages/messages";
import { NodesCard } from "./messages/nodes";
import { PathCard } from "./time-line/path-card";
import { firstProcesses, type Listing, Processes } from "./processes/processes";
import { ADDRESS_MS, around, fromQuery, lasting, type Range, toQuery } from "./range";
import { ReportCard } from "./report/report";
import { RoutedCard } from "./messages/routed";
import { Timeline } from "./time-line/timeline";
import { timelineTools } from "./time-line/tools";
import { WaitsCard } from "./calls/waits";
import "../../styles/data.css";
import "../../styles/recorded.css";
import "./profile.css";

type Tab =
  | "nodes"
  | "processes"
  | "findings"
  | "path"
  | "messages"
  | "waits"
  | "calls"
  | "groups"
  | "routed"
  | "report";

/** Lanes that are there at first, and at most. */
const FIRST_LANES = 16;
const MOST_LANES = 60;

const MODES: Record<About["runnable"], string> = {
  recorded: "",
  messages:
    "Which processes could run is estimated from messages: the system profiler did not record.",
  none: "Waiting includes waiting for a scheduler, which was not recorded.",
};

class ProfilePage implements MountedPage {
  private shown: Shown | null = null;
  private asking = false;
  private ended = false;

  constructor(
    private readonly root: HTMLElement,
    private readonly ctx: Ctx,
  ) {
    void this.ask();
  }

  update(change: Change): void {
    if (change.has("hello") && this.shown === null) void this.ask();
    if (change.has("theme")) this.shown?.timeline.redraw();
    if (change.has("route")) this.shown?.routed();
  }

  destroy(): void {
    this.ended = true;
    this.shown?.destroy();
    this.root.replaceChildren();
  }

  private async ask(): Promise<void> {
    const { hello } = this.ctx.store;
    if (this.asking || this.ended) return;
    // Before the server has said what it is, it is asked all the same: that is an answer less to wait for.
    if (!isRecorded(hello, "profile")) return this.nothing();
    this.asking = true;
    try {
      const first = firstProcesses();
      // Whoever waits for it is told, too.
      first.catch(() => {});
      const about = await getAbout();
      if (!this.ended && this.shown === null)
        this.shown = new Shown(this.root, this.ctx, about, first);
    } catch (error) {
      if (!this.ended && isRecorded(this.ctx.store.hello, "profile"))
        this.root.replaceChildren(emptyState("The recording does not answer", messageOf(error)));
    }
    this.asking = false;
    // What it is was said meanwhile.
    const now = this.ctx.store.hello;
    if (hello === null && now !== null && this.shown === null) void this.ask();
  }

  private nothing(): void {
    this.root.replaceChildren(
      emptyState(
        "No recording is open here",
        "`bin/sderl prof record NODE` records a node, and `bin/sderl prof open FILE` shows the recording.",
      ),
    );
  }
}

class Shown {
  readonly timeline: Timeline;
  private readonly processes: Processes;
  private readonly detail: Detail;
  private readonly findings: FindingsCard;
  private readonly path: PathCard | null;
  private readonly messages: MessagesCard;
  private readonly nodes: NodesCard | null;
  private readonly waits: WaitsCard | null;
  private readonly calls: Calls | null;
  private readonly groups: GroupsCard | null;
  private readonly gateways: RoutedCard | null;
  private readonly report: ReportCard;
  private readonly tabs: Choice<Tab>;
  private readonly release: (() => void)[];
  private lanes: Process[] = [];
  private ended = false;
  private timer: ReturnType<typeof setTimeout> | undefined;

  constructor(
    root: HTMLElement,
    private readonly ctx: Ctx,
    private readonly about: About,
    first: ReturnType<typeof firstProcesses>,
  ) {
    const failed = (message: string) => ctx.toast(message);
    const opened = (process: number) => ctx.setQuery({ process: String(process) });
    const stepped = (step: Range & { number: number }) => {
      this.timeline.go(around(step, about.duration));
      this.timeline.reveal();
      this.choose([step.number], true);
    };
    this.timeline = new Timeline(ctx, about, fromQuery(ctx.route.query, about.duration), {
      chosen: opened,
      moved: () => this.moved(),
      stepped,
      operated: (moment) => ctx.setQuery({ tab: "groups", moment: String(moment) }),
      failed,
    });
    this.processes = new Processes(
      about,
      this.timeline.shown,
      {
        opened,
        listed: (listing) => ctx.setQuery({ show: listing === "list" ? "" : listing }),
        toggled: (process, on) => this.toggle(process, on),
        first: (rows) => void this.first(rows),
        failed,
      },
      first,
    );
    this.detail = new Detail(about, {
      opened,
      closed: () => ctx.setQuery({ process: "" }),
      failed,
    });
    this.findings = new FindingsCard({
      went: (range, processes) => {
        if (range === null) this.timeline.all();
        else this.timeline.go(around(range, about.duration));
        this.timeline.reveal();
        this.choose(processes, false);
      },
      failed,
    });
    this.path = about.has_path
      ? new PathCard(about.duration, {
          opened,
          went: stepped,
          lanes: (processes) => this.choose(processes, false),
          found: (path) => this.timeline.trace(path),
          led: (process) => ctx.setQuery({ to_process: process === null ? "" : String(process) }),
        })
      : null;
    this.messages = new MessagesCard(about, { opened, asked: (query) => ctx.setQuery(query) });
    this.report = new ReportCard(about, { opened, chose: (top) => ctx.setQuery({ top }) });
    this.nodes = about.nodes.length > 0 ? new NodesCard(about) : null;
    const limited = (process: number | null) =>
      ctx.setQuery({ of_process: process === null ? "" : String(process) });
    this.waits =
      about.totals.wait > 0 ? new WaitsCard(about.duration, { limited, opened, failed }) : null;
    this.calls = about.has_calls
      ? new Calls(about.duration, {
          limited,
          chosen: (function_) => ctx.setQuery({ function: String(function_) }),
          failed,
        })
      : null;
    this.groups = about.items.includes("s_group")
      ? new GroupsCard(about, {
          opened,
          at: (moment) => this.timeline.at(moment),
          went: (moment) => ctx.setQuery({ moment: moment === null ? "" : String(moment) }),
        })
      : null;
    this.gateways = about.items.includes("routed") ? new RoutedCard(about) : null;
    this.tabs = choice<Tab>(
      "Shown below the time line",
      [
        ["processes", "Processes"],
        ...(about.nodes.length > 0 ? ([["nodes", "Nodes"]] as const) : []),
        ["findings", about.findings > 0 ? `Findings ${about.findings}` : "Findings"],
        ...(about.has_path ? ([["path", "Critical path"]] as const) : []),
        ...(about.has_messages ? ([["messages", "Messages"]] as const) : []),
        ...(about.totals.wait > 0 ? ([["waits", "Waits"]] as const) : []),
        ...(about.has_calls ? ([["calls", "Calls"]] as const) : []),
        ...(this.groups === null ? [] : ([["groups", "Groups"]] as const)),
        ...(this.gateways === null ? [] : ([["routed", "Routed"]] as const)),
        ["report", "Report"],
      ],
      "processes",
      (tab) => ctx.setQuery({ tab: tab === "processes" ? "" : tab }),
    );
    root.replaceChildren(
      this.head(),
      this.problems(),
      h(
        "section",
        { class: "card profile-card", "aria-label": "Time line" },
        timelineTools(about, this.timeline, this.groups !== null),
        this.timeline.root,
      ),
      h("div", { class: "row profile-tabs" }, this.tabs.root),
      this.detail.root,
      this.processes.root,
      this.findings.root,
      ...(this.path === null ? [] : [this.path.root]),
      this.messages.root,
      ...(this.nodes === null ? [] : [this.nodes.root]),
      ...(this.waits === null ? [] : [this.waits.root]),
      ...(this.calls === null ? [] : [this.calls.root]),
      ...(this.groups === null ? [] : [this.groups.root]),
      ...(this.gateways === null ? [] : [this.gateways.root]),
      this.report.root,
    );
    this.release = [
      searchKey(ctx, root, "Search processes"),
      ctx.keys.add(
        key("+", "Zoom in", () => this.timeline.zoom(1.6)),
        key("-", "Zoom out", () => this.timeline.zoom(1 / 1.6)),
        key("Home", "The whole run", () => this.timeline.all()),
        key("[", "Earlier", () => this.timeline.pan(-0.2)),
        key("]", "Later", () => this.timeline.pan(0.2)),
      ),
    ];
    this.routed();
  }

  routed(): void {
    const { query } = this.ctx.route;
    const tab = this.tab;
    this.tabs.choose(tab);
    this.processes.root.hidden = tab !== "processes";
    this.findings.root.hidden = tab !== "findings";
    this.messages.root.hidden = tab !== "messages";
    this.report.root.hidden = tab !== "report";
    if (this.path !== null) this.path.root.hidden = tab !== "path";
    if (this.waits !== null) this.waits.root.hidden = tab !== "waits";
    if (this.calls !== null) this.calls.root.hidden = tab !== "calls";
    if (this.nodes !== null) this.nodes.root.hidden = tab !== "nodes";
    if (this.gateways !== null) this.gateways.root.hidden = tab !== "routed";
    if (this.groups !== null) this.replayed(this.groups, tab === "groups");
    const beside: readonly Tab[] = ["processes", "nodes", "groups"];
    this.detail.root.classList.toggle("below", !beside.includes(tab));
    if (tab === "findings") void this.findings.show();
    if (tab === "report") this.report.show(query["top"]);
    if (tab !== "path") this.path?.hide();
    this.processes.as(listing(query["show"], this.about.has_ports));
    const open = numbered(query["process"]);
    this.follow();
    this.timeline.mark(open);
    this.processes.mark(open);
    void this.detail.show(open);
    this.detail.follow(this.timeline.shown);
  }

  destroy(): void {
    this.ended = true;
    clearTimeout(this.timer);
    for (const release of this.release) release();
    this.timeline.destroy();
    this.processes.destroy();
    this.path?.destroy();
    this.waits?.destroy();
    this.calls?.destroy();
    this.nodes?.destroy();
    this.groups?.destroy();
    this.gateways?.destroy();
    this.messages.destroy();
    this.report.destroy();
    this.detail.destroy();
  }

  private get tab(): Tab {
    const { tab } = this.ctx.route.query;
    const there =
      tab === "findings" ||
      tab === "report" ||
      (tab === "path" && this.path !== null) ||
      (tab === "messages" && this.about.has_messages) ||
      (tab === "nodes" && this.nodes !== null) ||
      (tab === "waits" && this.waits !== null) ||
      (tab === "calls" && this.calls !== null) ||
      (tab === "groups" && this.groups !== null) ||
      (tab === "routed" && this.gateways !== null);
    return there ? (tab as Tab) : "processes";
  }

  /** The groups at the moment of the address, which the time line shows, too. */
  private replayed(groups: GroupsCard, isShown: boolean): void {
    const text = this.ctx.route.query["moment"] ?? "";
    const moment = text !== "" && Number(text) >= 0 ? Number(text) : null;
    groups.root.hidden = !isShown;
    this.timeline.at(isShown ? moment : null);
    if (isShown) groups.show(moment);
    else groups.hide();
  }

  /** What is below the time line is of the part that it shows. */
  private follow(): void {
    const { tab } = this;
    const { query } = this.ctx.route;
    const { shown } = this.timeline;
    if (tab === "processes") this.processes.follow(shown);
    if (tab === "messages") this.messages.show(shown, query);
    if (tab === "nodes") this.nodes?.show(shown);
    if (tab === "routed") this.gateways?.show(shown);
    const whose = [numbered(query["of_process"]), numbered(query["process"])] as const;
    if (tab === "waits") this.waits?.show(shown, ...whose);
    if (tab === "calls") this.calls?.show(shown, ...whose, numbered(query["function"]));
    this.detail.follow(shown);
    if (tab === "path")
      this.path?.show(shown, numbered(query["to_process"]), numbered(query["process"]));
  }

  /** These have lanes now, alone or with the others; the first one is open. */
  private choose(processes: readonly number[], beside: boolean): void {
    const [first] = processes;
    if (first === undefined) return;
    this.ctx.setQuery({ process: String(first) });
    const there = new Set(this.lanes.map(({ process }) => process));
    if (beside && processes.every((process) => there.has(process))) return;
    const wanted = beside ? [...new Set([...processes, ...there])] : [...processes];
    void this.load(wanted.slice(0, MOST_LANES));
  }

  private async load(numbers: readonly number[]): Promise<void> {
    try {
      const { processes } = await getNumbered([...numbers]);
      // The address is another page's then.
      if (this.ended) return;
      this.show(processes);
      this.ctx.setQuery({ lanes: this.lanes.map((one) => one.process).join(",") });
    } catch (error) {
      if (!this.ended) this.ctx.toast(messageOf(error));
    }
  }

  private head(): HTMLElement {
    const { about } = this;
    const words = [
      lasting(about.duration),
      `${count(about.events)} events of ${count(about.processes)} processes`,
      about.online === null ? "" : `${about.online} schedulers`,
      about.otp === null ? "" : `OTP ${about.otp}`,
      about.items.length === 0 ? "" : `recorded: ${about.items.join(", ")}`,
    ];
    return h(
      "div",
      { class: "page-head" },
      h(
        "div",
        {},
        h("h1", {}, about.node === "" ? "Profile" : `Profile of ${about.node}`),
        h("p", { class: "muted" }, words.filter((word) => word !== "").join(" · ")),
      ),
    );
  }

  /** Always in sight: what is not there cannot be seen. */
  private problems(): HTMLElement {
    const { about } = this;
    const mode = MODES[about.runnable];
    const all = [...about.problems, ...(mode === "" ? [] : [mode])];
    return h(
      "div",
      { class: "profile-problems", role: "note", hidden: all.length === 0 },
      ...all.map((problem) => h("p", { class: "note" }, sentence(problem))),
    );
  }

  /** Those of the address, or the first ones. */
  private async first(rows: readonly Process[]): Promise<void> {
    const named = (this.ctx.route.query["lanes"] ?? "")
      .split(",")
      .map(numbered)
      .filter((n) => n !== null)
      .slice(0, MOST_LANES);
    if (named.length > 0) {
      try {
        return this.show((await getNumbered(named)).processes);
      } catch {
        // The first ones, then.
      }
    }
    this.show(rows.slice(0, FIRST_LANES));
  }

  private toggle(process: Process, on: boolean): void {
    if (on && this.lanes.length >= MOST_LANES)
      return this.ctx.toast(`The time line has room for ${MOST_LANES} processes`);
    const others = this.lanes.filter((one) => one.process !== process.process);
    this.show(on ? [...others, process] : others);
    this.ctx.setQuery({ lanes: this.lanes.map((one) => one.process).join(",") });
  }

  /** What runs longest is on top. */
  private show(lanes: readonly Process[]): void {
    if (this.ended) return;
    this.lanes = [...lanes].sort((a, b) => b.run - a.run);
    this.timeline.show(this.lanes);
    this.processes.show(new Set(this.lanes.map(({ process }) => process)));
  }

  private moved(): void {
    this.follow();
    clearTimeout(this.timer);
    this.timer = setTimeout(
      () => this.ctx.setQuery(toQuery(this.timeline.shown, this.about.duration)),
      ADDRESS_MS,
    );
  }
}

const key = (name: string, text: string, run: () => void) => ({
  key: name,
  text,
  section: "Profile",
  run,
});

const numbered = (text: string | undefined): number | null => {
  const process = Number(text);
  return Number.isInteger(process) && process > 0 ? process : null;
};

const listing = (text: string | undefined, hasPorts: boolean): Listing =>
  text === "tree" || (text === "ports" && hasPorts) ? text : "list";

export const page: Page = { mount: (root, ctx) => new ProfilePage(root, ctx) };
