// SPDX-License-Identifier: Apache-2.0
// Profile: a recording of `bin/sderl prof` as a time line, its processes, messages and calls.
import type { Ctx, Page } from "../../ui/ctx";
import type { Change } from "../../store/signals";
import { h } from "../../lib/dom";
import { count, messageOf, sentence } from "../../lib/format";
import { type Choice, choice, searchKey } from "../../ui/parts";
import { RecordedPage } from "../../ui/recorded";
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

/** What a tab shows. */
interface Card {
  readonly root: HTMLElement;
  destroy?(): void;
}

/** Lanes that are there at first, and at most. */
const FIRST_LANES = 16;
const MOST_LANES = 60;

const MODES: Record<About["runnable"], string> = {
  recorded: "",
  messages:
    "Which processes could run is estimated from messages: the system profiler did not record.",
  none: "Waiting includes waiting for a scheduler, which was not recorded.",
};

class ProfilePage extends RecordedPage<Shown> {
  override update(change: Change): void {
    super.update(change);
    if (change.has("theme")) this.shown?.timeline.redraw();
  }
}

class Shown {
  readonly timeline: Timeline;
  private readonly processes: Processes;
  private readonly detail: Detail;
  private readonly findings: FindingsCard;
  private readonly path: PathCard | null;
  private readonly messages: MessagesCard | null;
  private readonly nodes: NodesCard | null;
  private readonly waits: WaitsCard | null;
  private readonly calls: Calls | null;
  private readonly groups: GroupsCard | null;
  private readonly gateways: RoutedCard | null;
  private readonly report: ReportCard;
  /** Those that this recording has, in their order. */ private readonly cards: ReadonlyMap<
    Tab,
    Card
  >;
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
    this.messages = about.has_messages
      ? new MessagesCard(about, { opened, asked: (query) => ctx.setQuery(query) })
      : null;
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
    const all: readonly (readonly [Tab, string, Card | null])[] = [
      ["processes", "Processes", this.processes],
      ["nodes", "Nodes", this.nodes],
      ["findings", about.findings > 0 ? `Findings ${about.findings}` : "Findings", this.findings],
      ["path", "Critical path", this.path],
      ["messages", "Messages", this.messages],
      ["waits", "Waits", this.waits],
      ["calls", "Calls", this.calls],
      ["groups", "Groups", this.groups],
      ["routed", "Routed", this.gateways],
      ["report", "Report", this.report],
    ];
    const there = all.flatMap(([tab, title, card]) =>
      card === null ? [] : [{ tab, title, card }],
    );
    this.cards = new Map(there.map(({ tab, card }) => [tab, card]));
    this.tabs = choice<Tab>(
      "Shown below the time line",
      there.map(({ tab, title }) => [tab, title] as const),
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
      ...there.map(({ card }) => card.root),
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
    for (const [name, card] of this.cards) card.root.hidden = name !== tab;
    if (this.groups !== null) this.replayed(this.groups, tab === "groups");
    const beside: readonly Tab[] = ["processes", "nodes", "groups"];
    this.detail.root.classList.toggle("below", !beside.includes(tab));
    if (tab === "findings") this.findings.show();
    if (tab === "report") this.report.show(query["top"]);
    if (tab !== "path") this.path?.hide();
    this.processes.as(listing(query["show"], this.about.has_ports));
    const open = numbered(query["process"]);
    this.follow();
    this.timeline.mark(open);
    this.processes.mark(open);
    this.detail.show(open);
    this.detail.follow(this.timeline.shown);
  }

  destroy(): void {
    this.ended = true;
    clearTimeout(this.timer);
    for (const release of this.release) release();
    this.timeline.destroy();
    this.detail.destroy();
    for (const card of this.cards.values()) card.destroy?.();
  }

  private get tab(): Tab {
    const { tab } = this.ctx.route.query;
    return [...this.cards.keys()].find((one) => one === tab) ?? "processes";
  }

  /** The groups at the moment of the address, which the time line shows, too. */
  private replayed(groups: GroupsCard, isShown: boolean): void {
    const text = this.ctx.route.query["moment"] ?? "";
    const moment = text !== "" && Number(text) >= 0 ? Number(text) : null;

    this.timeline.at(isShown ? moment : null);
    if (isShown) groups.show(moment);
    else groups.hide();
  }

  /** Has the shown tab follow the part of the time line that is in sight. */
  private follow(): void {
    const { tab } = this;
    const { query } = this.ctx.route;
    const { shown } = this.timeline;
    if (tab === "processes") this.processes.follow(shown);
    if (tab === "messages") this.messages?.show(shown, query);
    if (tab === "nodes") this.nodes?.show(shown);
    if (tab === "routed") this.gateways?.show(shown);
    const whose = [numbered(query["of_process"]), numbered(query["process"])] as const;
    if (tab === "waits") this.waits?.show(shown, ...whose);
    if (tab === "calls") this.calls?.show(shown, ...whose, numbered(query["function"]));
    this.detail.follow(shown);
    if (tab === "path")
      this.path?.show(shown, numbered(query["to_process"]), numbered(query["process"]));
  }

  /** Gives these processes lanes, alone or beside those that have some, and opens the first one. */
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
      // The page has gone, and the address is another page's.
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

  /** Always in sight: nothing else shows what the recording lacks. */
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

export const page: Page = {
  mount: (root, ctx) =>
    new ProfilePage(root, ctx, {
      part: "profile",
      open: async () => {
        const first = firstProcesses();
        // The list that waits for it reports a failure.
        first.catch(() => {});
        const about = await getAbout();
        return () => new Shown(root, ctx, about, first);
      },
      nothing: [
        "No recording is open here",
        "`bin/sderl prof record NODE` records a node, and `bin/sderl prof open FILE` shows the recording.",
      ],
      failed: "The recording does not answer",
    }),
};
