// SPDX-License-Identifier: Apache-2.0
// One node: what it does now (or at the time shown), and over time.
import type { Ctx, MountedPage } from "../../ui/ctx";
import { type Bar, bar } from "../../lib/bars";
import { card, groupLink, note, stat, type Stat, emptyState } from "../../ui/parts";
import { shownTime } from "../../ui/period";
import { TimeWatch } from "../../ui/time-watch";
import type { Detail, TopologyNode } from "../../model/protocol";
import { Ring } from "../../lib/ring";
import type { Kind } from "../../store/signals";
import { NodeCharts } from "./charts";
import { Concerns } from "./concerns";
import { limitsOf, MEMORY_KINDS, memoryOf, schedulersOf } from "./detail-model";
import { Heat } from "./heat";
import { DirtyView } from "./dirty-view";
import { Flows, Links } from "./links";
import { Kinds } from "../../ui/kinds";
import { status } from "./picker";
import { Processes } from "./processes";
import { RingView } from "./ring-view";
import { SchedulerTable } from "./scheduler-table";
import { stockNote } from "./stock-note";
import { TraceSwitch } from "./tracing";
import { children as fill, h, text as setText } from "../../lib/dom";
import {
  byteRate,
  bytes,
  count,
  duration,
  messageRate,
  number,
  percent,
  share,
} from "../../lib/format";

/** Details kept while the page is open, so that one can scrub back in them. */
const KEPT = 600;
/** A detail stands for this many intervals after its time. */
const STALE_INTERVALS = 5;

const STATS: readonly (readonly [string, string, (value: number | null) => string, string])[] = [
  ["cpu_pct", "CPU", percent, "Processor time of the Erlang VM: 100 % is one core"],
  ["run_queue", "Run queue", number, "Processes that could run and wait for a scheduler"],
  ["procs", "Processes", count, "Processes alive"],
  ["mem", "Memory", bytes, "Memory that the VM has allocated"],
  ["host_cpu", "Host CPU", share, "All processors of the machine, whoever uses them"],
  ["host_mem", "Host memory", bytes, "Memory of the machine that is in use, by whomever"],
  ["mq_max", "Message queue", count, "Messages in the longest queue of a process"],
  ["out_msgs_s", "Sent", messageRate, "Messages to other nodes a second"],
  ["in_msgs_s", "Received", messageRate, "Messages from other nodes a second"],
  ["out_bytes_s", "Bytes sent", byteRate, "Bytes to other nodes a second"],
];

const NOT_KEPT =
  "The history keeps a node's totals. Its schedulers, processes and links are known only for times at which this page was open; the charts reach further back.";
const STOCK_UTIL =
  "The utilisation of the schedulers is unknown: stock OTP measures it only when asked, and no probe of this node reports to this monitor.";
const NO_UTIL =
  "The utilisation of the schedulers is unknown until the node's second report: it is measured between two of them.";

const REDRAWN: readonly Kind[] = ["frame", "topology", "detail", "findings", "hello", "theme"];

const sentence = (words: string): string => (/[.?!]$/.test(words) ? words : `${words}.`);

/** Said below a number, where it says little alone. */
function beside(key: string, metric: (key: string) => number | null): string {
  if (metric(key) === null) return "";
  if (key === "cpu_pct") return "of one core";
  if (key === "host_cpu") return "of all cores";
  const total = key === "host_mem" ? metric("host_mem_total") : null;
  return total === null ? "" : `of ${bytes(total)}`;
}

export function mountNode(root: HTMLElement, ctx: Ctx, name: string): MountedPage {
  const view = new NodeView(root, ctx, name);
  const release = ctx.store.watch(name);
  view.draw();
  return {
    update(change) {
      if (change.has("hello")) view.sourceChanged();
      if (change.has("detail")) view.detailCame();
      if (REDRAWN.some((kind) => change.has(kind))) view.draw();
      view.time.update(change);
    },
    destroy() {
      release();
      view.destroy();
    },
  };
}

class NodeView {
  private readonly details = new Ring<Detail>(KEPT);
  private readonly state = h("span", {});
  private readonly groups = h("span", { class: "tags" });
  private readonly facts = h("span", { class: "muted num" });
  private readonly notes = h("div", {});
  private readonly stats = new Map<string, Stat>();
  private readonly ring = new RingView();
  private readonly dirty = new DirtyView();
  private readonly schedulers = new SchedulerTable();
  private readonly unknown = h("p", { class: "note", hidden: true });
  private readonly limits = new Map<string, Bar>();
  private readonly limitRoot = h("div", { class: "bars" });
  private readonly memory = h("div", { class: "bars" });
  private readonly memoryBars = new Map<string, Bar>();
  private readonly concerns: Concerns;
  private readonly heat: Heat;
  private readonly charts: NodeCharts;
  private readonly processes: Processes;
  private readonly links: Links;
  private readonly kinds = new Kinds();
  private readonly flows = new Flows();
  private readonly trace: TraceSwitch;
  private readonly profile: HTMLElement;
  /** What only a detail tells; in its place `unkept` where there is none. */
  private readonly now: HTMLElement;
  private readonly lists: HTMLElement;
  private readonly unkept = h("p", { class: "note", role: "status", hidden: true });
  private readonly gone = h("div", { hidden: true });
  private readonly body: HTMLElement;
  private lastMoved = 0;
  readonly time: TimeWatch;
  private noted = "";

  constructor(
    private readonly root: HTMLElement,
    private readonly ctx: Ctx,
    private readonly name: string,
  ) {
    this.heat = new Heat(ctx);
    this.time = new TimeWatch(ctx, () => this.charts.refresh());
    this.charts = new NodeCharts(ctx, name, this.heat.root);
    this.processes = new Processes(ctx, name);
    this.links = new Links(ctx);
    this.trace = new TraceSwitch(ctx, name);
    this.profile = h(
      "a",
      {
        class: "button",
        hidden: true,
        "data-testid": "to-profile",
        href: ctx.href("profiles", null, { on: `node:${name}` }),
      },
      "Profile …",
    );
    const stats = STATS.map(([key, label, , hint]) => {
      const one = stat(label, hint);
      this.stats.set(key, one);
      return one.root;
    });
    this.now = h(
      "div",
      { class: "node-top" },
      card(
        "Schedulers",
        {
          hint: "Bars: run queues, on one scale for all nodes. Fill: utilisation.",
          class: "ring-card",
          testid: "schedulers",
        },
        this.unknown,
        this.ring.root,
        this.dirty.root,
        this.schedulers.root,
      ),
      h(
        "div",
        { class: "node-side" },
        card("Memory", { hint: "All that the VM has allocated, by kind." }, this.memory),
        card(
          "Limits",
          { hint: "A VM at one of its limits refuses work, or ends." },
          this.limitRoot,
        ),
      ),
    );
    this.lists = h(
      "div",
      { class: "node-body" },
      this.processes.root,
      h("div", { class: "node-pair" }, this.links.root, this.kinds.root),
      this.flows.root,
    );
    this.concerns = new Concerns(ctx, name);
    this.body = h(
      "div",
      { class: "node-body" },
      this.notes,
      this.concerns.root,
      h("dl", { class: "stats" }, ...stats),
      this.unkept,
      this.now,
      this.charts.root,
      this.lists,
    );
    root.append(
      h(
        "div",
        { class: "page-head" },
        h(
          "div",
          {},
          h("a", { href: ctx.href("node"), class: "back" }, "All nodes"),
          h("h1", {}, name),
          h("p", { class: "page-sub" }, this.state, this.groups, this.facts),
        ),
        h(
          "div",
          { class: "card-tools" },
          h("a", { class: "button", href: ctx.href("events", null, { node: name }) }, "Events"),
          h(
            "a",
            { class: "button", href: ctx.href("traffic", null, { by: "link", q: name }) },
            "Traffic",
          ),
          this.profile,
          this.trace.root,
        ),
      ),
      this.gone,
      this.body,
    );
  }

  destroy(): void {
    this.time.destroy();
    this.charts.destroy();
    this.root.replaceChildren();
  }

  detailCame(): void {
    const detail = this.ctx.store.details.get(this.name);
    if (!detail || this.details.last?.t === detail.t) return;
    this.details.push(detail);
    if (this.ctx.store.time.mode !== "live" || detail.t === this.lastMoved) return;
    this.lastMoved = detail.t;
    // After the ring has been drawn, which may have been built anew.
    queueMicrotask(() => this.ring.migrate(detail.migrations ?? []));
  }

  /** Connected, or another recording: what was seen is of another time. */
  sourceChanged(): void {
    this.details.clear();
    this.charts.refresh();
  }

  draw(): void {
    const { topology, frame } = this.ctx.store.shown;
    const node = topology?.nodeNamed(this.name);
    this.gone.hidden = node !== undefined || topology === null;
    this.body.hidden = node === undefined;
    if (!node) {
      setText(this.facts, "");
      if (!this.gone.hidden && !this.gone.hasChildNodes()) {
        fill(
          this.gone,
          emptyState(
            "Not there",
            `No node ${this.name} was known at this time. It may have been down, or not watched.`,
          ),
        );
      }
      return;
    }
    fill(this.state, status(node));
    const groups = topology?.groupsOf(node) ?? [];
    fill(
      this.groups,
      ...(groups.length === 0
        ? [h("span", { class: "muted" }, "free node")]
        : groups.map((group) => groupLink(this.ctx, group.name))),
    );
    const metric = (key: string): number | null => {
      const value = frame?.value(node.id, key) ?? NaN;
      return Number.isFinite(value) ? value : null;
    };
    for (const [key, , format] of STATS)
      this.stats.get(key)?.draw(format(metric(key)), beside(key, metric));
    const detail = this.detailShown();
    const otp = node.otp ?? detail?.otp;
    setText(
      this.facts,
      [
        otp ? `OTP ${otp}` : null,
        node.status === "up" && detail?.uptime_s !== undefined
          ? `up for ${duration(detail.uptime_s)}`
          : null,
        node.hidden ? "hidden" : null,
      ]
        .filter((one) => one !== null)
        .join(" · "),
    );
    this.drawNotes(node);
    this.profile.hidden = this.ctx.store.hello?.profiling !== true;
    this.trace.draw(
      detail?.tracing ?? this.details.last?.tracing ?? false,
      node.source === "probe" || node.source === "synthetic"
        ? null
        : "Tracing needs a probe, and no probe of this node reports to this monitor.",
    );
    this.heat.draw(this.details.all());
    this.concerns.draw(this.ctx.store.shown.findings, detail?.problems ?? []);
    this.drawDetail(detail, node.source === "stock", node.status === "up");
  }

  /** The detail of the time shown, null where none was seen then. */
  private detailShown(): Detail | null {
    const { time, hello } = this.ctx.store;
    if (time.mode === "live") return this.details.last ?? null;
    const t = shownTime(this.ctx);
    const found = this.details.at(t);
    return found && t - found.t <= STALE_INTERVALS * Math.max(1000, hello?.interval_ms ?? 1000)
      ? found
      : null;
  }

  private drawNotes(node: TopologyNode): void {
    const { source, library, why, status: state } = node;
    const key = JSON.stringify([source, library, why, state]);
    if (key === this.noted) return;
    this.noted = key;
    fill(
      this.notes,
      source === "stock" ? stockNote(node) : null,
      state !== "up"
        ? note(
            h("strong", {}, `This node is ${state}. `),
            why ? `The monitor says: ${sentence(why)} ` : "",
            "Its present numbers are not known; all else below is what it reported last.",
          )
        : null,
    );
  }

  private drawDetail(detail: Detail | null, stock: boolean, up: boolean): void {
    this.now.hidden = detail === null;
    this.lists.hidden = detail === null;
    this.unkept.hidden = detail !== null;
    if (detail === null) {
      const live = this.ctx.store.time.mode === "live" && this.ctx.store.recording === null;
      setText(
        this.unkept,
        live
          ? up
            ? "Waiting for the node's report …"
            : "It reported nothing while this page was open."
          : NOT_KEPT,
      );
      return;
    }
    const schedulers = schedulersOf(detail);
    const none = schedulers.all.length === 0;
    const unknown = none
      ? "This node does not report its schedulers."
      : schedulers.measured
        ? ""
        : stock
          ? STOCK_UTIL
          : NO_UTIL;
    this.unknown.hidden = unknown === "";
    setText(this.unknown, unknown);
    for (const one of [this.ring, this.dirty, this.schedulers]) one.root.hidden = none;
    this.ring.draw(schedulers.all, detail.tracing ?? false);
    this.dirty.draw(schedulers.all, schedulers.dirty);
    this.schedulers.draw(schedulers.all);
    this.drawMemory(detail);
    this.drawLimits(detail);
    this.processes.draw(detail.top, stock);
    this.links.draw(detail.links, stock);
    this.kinds.root.hidden = stock;
    this.kinds.draw(detail.kinds);
    this.flows.draw(detail.traffic);
  }

  private drawMemory(detail: Detail): void {
    const { total, kinds } = memoryOf(detail.memory);
    const known = MEMORY_KINDS.filter(([kind]) => kinds[kind] !== null);
    this.show(this.memory, this.memoryBars, known, bytes, false);
    for (const [kind] of known) this.memoryBars.get(kind)?.draw(kinds[kind], total);
  }

  private drawLimits(detail: Detail): void {
    const limits = limitsOf(detail);
    this.show(
      this.limitRoot,
      this.limits,
      limits.map((one) => [one.key, one.label] as const),
      count,
      true,
    );
    for (const one of limits) this.limits.get(one.key)?.draw(one.used, one.limit);
  }

  /** Makes the bars that are missing; says so where there are none. */
  private show(
    root: HTMLElement,
    bars: Map<string, Bar>,
    wanted: readonly (readonly [string, string])[],
    format: (value: number | null | undefined) => string,
    warns: boolean,
  ): void {
    if (wanted.length === 0 && !root.hasChildNodes())
      fill(root, h("p", { class: "muted" }, "Not known at this time."));
    if (wanted.some(([key]) => !bars.has(key))) {
      bars.clear();
      for (const [key, label] of wanted) bars.set(key, bar(label, format, warns));
      fill(root, ...[...bars.values()].map((one) => one.root));
    }
    if (wanted.length === 0) for (const one of bars.values()) one.draw(null, null);
  }
}
