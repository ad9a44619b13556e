// SPDX-License-Identifier: Apache-2.0
// What the nodes log, newest first, as it comes; and searches in what is kept.
import type { Ctx, MountedPage, Page } from "../../ui/ctx";
import type { Change } from "../../store/signals";
import { children as fill, h, text as setText } from "../../lib/dom";
import { bytes, clock, count, dateTime, messageOf } from "../../lib/format";
import {
  card,
  type Choice,
  choice,
  facts,
  groupLink,
  level,
  nodeLink,
  searchKey,
  closeButton,
  searchField,
} from "../../ui/parts";
import { names, options } from "../../ui/options";
import { stoppedAt } from "../../ui/period";
import { Polled } from "../../ui/polled";
import { TimeWatch } from "../../ui/time-watch";
import { type Table, table } from "../../lib/table";
import type { LogEvent, LogInfo, LogLevel, LogPage } from "../../model/protocol";
import {
  asked,
  type Filter,
  kept,
  leftOut,
  LEVELS,
  newer,
  newest,
  NOTHING,
  older,
  severity,
  type Shown,
} from "./model";
import "../../styles/data.css";
import "./log.css";

const PAGE = 200;
const EVERY_MS = 1000;
/** The server is asked when the typing pauses, and not for each letter. */
const REST_MS = 250;

export const page: Page = {
  mount: (root, ctx) => new LogPageView(root, ctx),
};

class LogPageView implements MountedPage {
  private readonly table: Table<LogEvent>;
  private readonly text = searchField("Search the text", "log-text", true);
  private readonly module = searchField("Module, as m or m:f", "log-module", false);
  private readonly level = h(
    "select",
    { class: "select", "aria-label": "Level" },
    ...LEVELS.map(([value, label]) => h("option", { value }, label)),
  );
  private readonly node = h("select", { class: "select", "aria-label": "Node" });
  private readonly group = h("select", { class: "select", "aria-label": "Group" });
  private readonly tail: Choice<"" | "held">;
  private readonly more = h(
    "button",
    { type: "button", class: "button", click: () => void this.older() },
    "Load older",
  );
  private readonly chosen = h("div", { class: "chosen", hidden: true });
  private readonly about = h("p", { class: "muted log-about", role: "status" });
  private readonly lost = h("p", {
    class: "problem problem-warning",
    role: "status",
    hidden: true,
  });
  private readonly problem = h("p", { class: "problem", role: "alert", hidden: true });
  private readonly polled: Polled<LogPage | null>;
  private readonly time: TimeWatch;
  private readonly release: () => void;
  private shown: Shown = NOTHING;
  /** The highest number that there was; null before the first answer to these filters. */
  private last: number | null = null;
  /** Answers to an earlier question are not shown. */
  private question = 0;
  private held = false;
  private ended = false;
  private options = "";
  private typing: ReturnType<typeof setTimeout> | undefined;

  constructor(
    private readonly root: HTMLElement,
    private readonly ctx: Ctx,
  ) {
    this.table = table<LogEvent>({
      caption: "Log",
      roomy: true,
      id: ({ id }) => String(id),
      order: { key: "t", direction: "descending" },
      maxHeight: "max(20rem, calc(100dvh - 19rem))",
      rowClass: ({ lost }) => (lost > 0 ? "log-left-out" : null),
      onChoose: (event) => this.choose(event),
      columns: [
        {
          key: "t",
          label: "Time",
          value: ({ id }) => id,
          show: ({ t }) => h("span", { class: "num", title: dateTime(t) }, clock(t)),
          width: "5.5rem",
        },
        {
          key: "level",
          label: "Level",
          value: (event) => severity(event.level),
          show: (event) => level(event.level),
          width: "6.8rem",
          narrow: "2.4rem",
        },
        {
          key: "text",
          label: "What",
          value: ({ text }) => text,
          show: ({ text }) => h("span", { class: "lines", title: text.slice(0, 400) }, text),
        },
        {
          key: "mfa",
          label: "By",
          value: ({ mfa }) => mfa,
          show: ({ mfa }) => h("span", { class: "muted", title: mfa }, mfa),
          width: "13rem",
          wide: true,
        },
        {
          key: "node",
          label: "Node",
          value: ({ node }) => node,
          show: ({ node }) => nodeLink(ctx, node),
          width: "12rem",
          wide: true,
        },
      ],
    });
    this.tail = choice<"" | "held">(
      "New events",
      [
        ["", "Follow", "New events come in as they are logged"],
        ["held", "Hold", "What is shown stays as it is"],
      ],
      "",
      (as) => this.hold(as === "held"),
    );
    for (const [input, key] of [
      [this.text, "text"],
      [this.module, "module"],
    ] as const) {
      input.value = ctx.route.query[key] ?? "";
      input.addEventListener("input", () => {
        clearTimeout(this.typing);
        this.typing = setTimeout(() => this.change(key, input.value), REST_MS);
      });
    }
    for (const [select, key] of [
      [this.level, "level"],
      [this.node, "node"],
      [this.group, "group"],
    ] as const)
      select.addEventListener("change", () => this.change(key, select.value));
    root.append(
      card(
        "Log",
        {
          hint: "What the nodes log, the newest first. Choose an event to read all of it.",
          tools: [this.tail.root, this.text, this.level, this.module, this.group, this.node],
          testid: "log",
        },
        this.problem,
        this.lost,
        this.chosen,
        this.table.root,
        h("div", { class: "row list-more" }, this.more, this.about),
      ),
    );
    this.table.empty("Asking ...");
    this.drawOptions();
    this.time = new TimeWatch(ctx, () => this.anew());
    this.release = searchKey(ctx, root, "Search the log");
    this.polled = new Polled<LogPage | null>(ctx, {
      ask: () => this.ask(),
      show: (answer) => this.show(answer),
      failed: (message) => this.failed(message),
      everyMs: () => EVERY_MS,
    });
  }

  update(change: Change): void {
    if (change.has("hello")) this.anew();
    if (change.has("topology") || change.has("route")) this.drawOptions();
    this.time.update(change);
  }

  destroy(): void {
    this.ended = true;
    clearTimeout(this.typing);
    this.polled.destroy();
    this.time.destroy();
    this.release();
    this.root.replaceChildren();
  }

  private filter(): Filter {
    const { query } = this.ctx.route;
    return {
      text: query["text"] ?? "",
      level: (query["level"] ?? "") as LogLevel | "",
      node: query["node"] ?? "",
      group: query["group"] ?? "",
      module: query["module"] ?? "",
      until: stoppedAt(this.ctx),
    };
  }

  private change(key: string, value: string): void {
    this.ctx.setQuery({ [key]: value });
    this.anew();
  }

  /** Another question: what is shown begins anew with its answer. */
  private anew(): void {
    this.last = null;
    this.question += 1;
    this.more.disabled = true;
    this.polled.refresh();
  }

  private hold(held: boolean): void {
    this.held = held;
    this.tail.choose(held ? "held" : "");
    if (!held) this.polled.refresh();
  }

  /** Null where nothing is to be asked. */
  private async ask(): Promise<LogPage | null> {
    const { last } = this;
    if (last === null) return this.found({ limit: PAGE });
    if (this.held || stoppedAt(this.ctx) !== null) return null;
    return this.request({ limit: PAGE, after: newest(this.shown, last) });
  }

  /** The server reads a bounded part of the log for each page: behind an empty page there may be others. */
  private async found(more: { limit: number; before?: number }): Promise<LogPage> {
    const asking = JSON.stringify(this.filter());
    const first = await this.request(more);
    let answer = first;
    while (answer.events.length === 0 && answer.next !== null && !this.ended) {
      if (JSON.stringify(this.filter()) !== asking) break;
      answer = await this.request({ ...more, before: answer.next });
    }
    return { ...answer, log: first.log };
  }

  private request(more: { limit: number; after?: number; before?: number }): Promise<LogPage> {
    return this.ctx.store.request("log", { ...asked(this.filter()), ...more });
  }

  /** An answer that comes while the list is held is left out: it is asked for again afterwards. */
  private show(answer: LogPage | null): void {
    if (answer === null || (this.held && this.last !== null)) return;
    this.shown =
      this.last === null ? { events: answer.events, next: answer.next } : newer(this.shown, answer);
    this.last = newest(this.shown, Math.max(this.last ?? 0, answer.log.last));
    this.draw(answer.log);
  }

  private failed(message: string): void {
    setText(this.about, message);
    if (this.last === null) {
      this.shown = NOTHING;
      this.table.empty(message);
      this.table.rows([]);
    }
  }

  private draw(log: LogInfo): void {
    const { until, ...filter } = this.filter();
    this.table.empty(
      Object.values(filter).some((value) => value !== "")
        ? "No event passes these filters."
        : until !== null
          ? `Nothing is kept from before ${clock(until)}.`
          : "No node has logged anything since this monitoring node began.",
    );
    this.table.rows(this.shown.events);
    this.more.disabled = this.shown.next === null;
    const lost = leftOut(log, count);
    setText(this.lost, lost);
    this.lost.hidden = lost === "";
    setText(this.problem, log.problem ?? "");
    this.problem.hidden = log.problem === null;
    setText(
      this.about,
      `${count(kept(log))} events came; ${bytes(log.bytes)} are kept in ${log.place}` +
        (log.range === null ? "." : `, the oldest of ${dateTime(log.range[0])}.`),
    );
  }

  private async older(): Promise<void> {
    const { question } = this;
    const { next } = this.shown;
    if (next === null || this.last === null) return;
    this.more.disabled = true;
    try {
      const answer = await this.found({ limit: PAGE, before: next });
      if (question !== this.question) return;
      this.shown = older(this.shown, answer);
      this.draw(answer.log);
    } catch (error) {
      if (question !== this.question) return;
      this.more.disabled = false;
      this.ctx.toast(messageOf(error));
    }
  }

  /** Shows one event in full; what comes meanwhile would move it. */
  private choose(event: LogEvent): void {
    this.hold(true);
    const close = () => {
      this.chosen.hidden = true;
      this.table.mark(null);
      this.hold(false);
    };
    fill(
      this.chosen,
      h(
        "div",
        { class: "row" },
        closeButton(close, { class: "icon-button log-close" }),
        level(event.level),
        h("span", { class: "num" }, dateTime(event.t)),
        nodeLink(this.ctx, event.node),
        ...event.groups.map((group) => groupLink(this.ctx, group)),
      ),
      h("pre", { class: "chosen-text", tabindex: "0" }, event.text),
      facts(
        (
          [
            ["by", event.mfa],
            ["process", event.pid],
            ["by the node's clock", event.node_t === event.t ? "" : dateTime(event.node_t)],
          ] as const
        ).filter(([, value]) => value !== ""),
      ),
    );
    this.chosen.hidden = false;
    this.table.mark(String(event.id));
  }

  private drawOptions(): void {
    const { topology } = this.ctx.store.shown;
    const filter = this.filter();
    const nodes = names(topology?.nodes, filter.node);
    const groups = names(topology?.groups, filter.group);
    const key = JSON.stringify([nodes, groups, filter]);
    if (key === this.options) return;
    this.options = key;
    this.level.value = filter.level;
    options(this.node, "All nodes", nodes, filter.node);
    options(this.group, "All groups", groups, filter.group);
  }
}
