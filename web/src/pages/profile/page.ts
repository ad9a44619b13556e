// SPDX-License-Identifier: Apache-2.0
// Profile: a recording of `bin/sderl prof` as a time line, its processes, messages and calls.
import type { Ctx, MountedPage, Page } from "../../ui/ctx";
import type { Change } from "../../store/signals";
import { h } from "../../lib/dom";
import { count } from "../../lib/format";
import { type Choice, choice, emptyState, searchKey } from "../../ui/parts";
import { icon, type IconName } from "../../ui/icons";
import { type About, getAbout, getNumbered, type Process } from "./answers";
import { Detail } from "./detail";
import { Flame } from "./flame";
import { MessagesCard } from "./messages";
import { Processes } from "./processes";
import { fromQuery, lasting, toQuery } from "./range";
import { Timeline } from "./timeline";
import "../../styles/data.css";
import "./profile.css";

type Tab = "processes" | "messages" | "calls";

/** Lanes that are there at first, and at most. */
const FIRST_LANES = 16;
const MOST_LANES = 60;
const ADDRESS_MS = 300;

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
    if (hello?.profile !== true) {
      if (hello !== null) this.nothing();
      return;
    }
    this.asking = true;
    try {
      const about = await getAbout();
      if (!this.ended && this.shown === null) this.shown = new Shown(this.root, this.ctx, about);
    } catch (error) {
      if (!this.ended)
        this.root.replaceChildren(
          emptyState(
            "The recording does not answer",
            error instanceof Error ? error.message : String(error),
          ),
        );
    }
    this.asking = false;
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
  private readonly messages: MessagesCard;
  private readonly flame: Flame | null;
  private readonly tabs: Choice<Tab>;
  private readonly release: (() => void)[];
  private lanes: Process[] = [];
  private timer: ReturnType<typeof setTimeout> | undefined;

  constructor(
    root: HTMLElement,
    private readonly ctx: Ctx,
    private readonly about: About,
  ) {
    const failed = (message: string) => ctx.toast(message);
    const opened = (process: number) => ctx.setQuery({ process: String(process) });
    this.timeline = new Timeline(ctx, about, fromQuery(ctx.route.query, about.duration), {
      chosen: opened,
      moved: () => this.moved(),
      failed,
    });
    this.processes = new Processes({
      opened,
      toggled: (process, on) => this.toggle(process, on),
      first: (rows) => void this.first(rows),
      failed,
    });
    this.detail = new Detail(about, {
      opened,
      closed: () => ctx.setQuery({ process: "" }),
      failed,
    });
    this.messages = new MessagesCard(opened);
    this.flame = about.has_calls ? new Flame(failed) : null;
    this.tabs = choice<Tab>(
      "Shown below the time line",
      [
        ["processes", "Processes"],
        ...(about.has_messages ? ([["messages", "Messages"]] as const) : []),
        ...(about.has_calls ? ([["calls", "Calls"]] as const) : []),
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
        this.tools(),
        this.timeline.root,
      ),
      h("div", { class: "row", hidden: !about.has_messages && !about.has_calls }, this.tabs.root),
      this.detail.root,
      this.processes.root,
      this.messages.root,
      ...(this.flame === null ? [] : [this.flame.root]),
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
    this.messages.root.hidden = tab !== "messages";
    if (this.flame !== null) this.flame.root.hidden = tab !== "calls";
    if (tab === "messages") this.messages.show(this.timeline.shown);
    const process = Number(query["process"]);
    const open = Number.isInteger(process) && process > 0 ? process : null;
    this.timeline.mark(open);
    this.processes.mark(open);
    void this.detail.show(open);
  }

  destroy(): void {
    clearTimeout(this.timer);
    for (const release of this.release) release();
    this.timeline.destroy();
    this.processes.destroy();
    this.messages.destroy();
  }

  private get tab(): Tab {
    const { tab } = this.ctx.route.query;
    const there =
      (tab === "messages" && this.about.has_messages) || (tab === "calls" && this.flame !== null);
    return there ? (tab as Tab) : "processes";
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

  private tools(): HTMLElement {
    const button = (name: IconName, label: string, act: () => void) =>
      h(
        "button",
        { type: "button", class: "icon-button", title: label, "aria-label": label, onclick: act },
        icon(name),
      );
    const legend = (kind: string, text: string) =>
      h("span", { class: `profile-key key-${kind}` }, h("i", {}), text);
    return h(
      "div",
      { class: "profile-tools" },
      h("h2", {}, "Time line"),
      h(
        "div",
        { class: "profile-legend" },
        legend("running", "runs"),
        legend("runnable", "waits for a scheduler"),
        legend("waiting", "waits"),
        this.about.totals.gc > 0 ? legend("gc", "collects garbage") : null,
      ),
      h(
        "div",
        { class: "row" },
        button("left", "Earlier ([)", () => this.timeline.pan(-0.4)),
        button("right", "Later (])", () => this.timeline.pan(0.4)),
        button("minus", "Zoom out (-)", () => this.timeline.zoom(0.5)),
        button("plus", "Zoom in (+)", () => this.timeline.zoom(2)),
        button("fit", "The whole run (Home)", () => this.timeline.all()),
      ),
    );
  }

  /** Those of the address, or the first ones. */
  private async first(rows: readonly Process[]): Promise<void> {
    const named = (this.ctx.route.query["lanes"] ?? "")
      .split(",")
      .map(Number)
      .filter((n) => Number.isInteger(n) && n > 0)
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
    this.lanes = [...lanes].sort((a, b) => b.run - a.run);
    this.timeline.show(this.lanes);
    this.processes.show(new Set(this.lanes.map(({ process }) => process)));
  }

  private moved(): void {
    if (this.tab === "messages") this.messages.show(this.timeline.shown);
    clearTimeout(this.timer);
    // Browsers take only so many changes of the address a second.
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

function sentence(text: string): string {
  // The name of a file stays as it is.
  const first = /^[a-z]+ /.test(text) ? text.slice(0, 1).toUpperCase() + text.slice(1) : text;
  return /[.!?]$/.test(first) ? first : `${first}.`;
}

export const page: Page = { title: "Profile", mount: (root, ctx) => new ProfilePage(root, ctx) };
