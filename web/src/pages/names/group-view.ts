// SPDX-License-Identifier: Apache-2.0
// One group's names: who has them, a search, a look-up, and registrations over time.
import type { Ctx } from "../../ui/ctx";
import { type Chart, chart } from "../../lib/chart";
import { children as fill, h, text as setText } from "../../lib/dom";
import { ago, count, dateTime, rate, messageOf } from "../../lib/format";
import { card, facts, groupLink, level, nodeLink } from "../../ui/parts";
import {
  chartSpan,
  periodChoice,
  seekShown,
  POINTS,
  refreshMs,
  shownTime,
  span,
  stoppedAt,
} from "../../ui/period";
import { Polled } from "../../ui/polled";
import { TimeWatch } from "../../ui/time-watch";
import { type Table, table } from "../../lib/table";
import { namesOf } from "../../model/known";
import type { NameRow, Series } from "../../model/protocol";
import { containing, type Listed } from "./listed";
import type { Change } from "../../store/signals";

const LIMIT = 500;
const NAMES_EVERY_MS = 5000;
const TYPING_MS = 200;

const RATES: readonly (readonly [string, string])[] = [
  ["regs_s", "registered"],
  ["unregs_s", "unregistered"],
  ["failed_regs_s", "refused"],
];

const NO_PROBE =
  "The names of this group are not known here: no probe of its nodes reports to this monitor. The page of a node says why, and what to do.";

export class GroupView {
  readonly root: HTMLElement;
  private readonly about = h("div", {});
  private readonly held = h("strong", { class: "num" });
  private readonly search = h("input", {
    class: "input",
    type: "search",
    placeholder: "Any part of a name",
    "aria-label": "Any part of a name",
    autocomplete: "off",
    spellcheck: "false",
    "data-testid": "name-search",
    "data-search": true,
  });
  private readonly found = h("div", { role: "status" });
  private readonly counted = h("span", { class: "muted num" });
  private readonly names: Table<NameRow>;
  private readonly rates: Chart;
  private readonly total: Chart;
  private readonly list: Polled<Listed>;
  private readonly series: Polled<Series>;
  /** More names than the page lists at once. */
  private many = false;
  /** How many names the group has now, where all of them were listed. */
  private listedNow: number | null = null;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private readonly time: TimeWatch;
  private described = "";

  constructor(
    private readonly ctx: Ctx,
    readonly group: string,
  ) {
    this.search.value = ctx.route.query["q"] ?? "";
    this.names = table<NameRow>({
      caption: `Names in ${group}`,
      id: (row) => `${row.name} ${row.pid}`,
      order: { key: "name", direction: "ascending" },
      maxHeight: "24rem",
      empty: "Asking …",
      columns: [
        {
          key: "name",
          label: "Name",
          // What is called exactly so comes first.
          value: (row) => (row.name === this.search.value.trim() ? "" : row.name),
          show: (row) => h("code", { title: row.name }, row.name),
        },
        {
          key: "pid",
          label: "Process",
          value: (row) => row.pid,
          show: (row) => h("code", {}, row.pid),
          width: "8.5rem",
        },
        {
          key: "node",
          label: "Node",
          value: (row) => row.node,
          show: (row) => nodeLink(ctx, row.node),
          wide: true,
        },
      ],
    });
    const pick = (t: number) => seekShown(ctx, t);
    this.rates = chart({
      title: "Registrations over time",
      format: rate,
      max: 1,
      onPick: pick,
      height: 130,
    });
    this.total = chart({
      title: "Names over time",
      format: count,
      max: 10,
      onPick: pick,
      height: 130,
    });
    const form = h(
      "form",
      { class: "row name-form", role: "search" },
      this.search,
      h("button", { type: "submit", class: "button" }, "Look up"),
      this.counted,
    );
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.searched();
      void this.lookUp();
    });
    this.search.addEventListener("input", () => {
      clearTimeout(this.timer);
      this.timer = setTimeout(() => this.searched(), TYPING_MS);
    });
    this.root = h(
      "div",
      { class: "names-view" },
      card(
        group,
        { tools: [h("a", { class: "button", href: ctx.href("groups", group) }, "Show the group")] },
        this.about,
      ),
      card(
        "Names",
        {
          hint: "Typing narrows the list; Look up asks the group for exactly this name. Names are Erlang terms.",
        },
        form,
        this.found,
        this.names.root,
      ),
      card(
        "Registrations",
        { tools: [periodChoice(ctx, () => this.series.refresh())] },
        h("div", { class: "traffic-charts" }, this.rates.root, this.total.root),
      ),
    );
    this.time = new TimeWatch(ctx, () => this.series.refresh());
    this.list = new Polled(ctx, {
      everyMs: () => NAMES_EVERY_MS,
      ask: () => this.askNames(),
      show: (answer) => this.listed(answer),
      failed: (message) => {
        setText(this.counted, "");
        this.listedNow = null;
        this.names.empty(this.isProbed() ? message : NO_PROBE);
        this.names.rows([]);
      },
    });
    this.series = new Polled(ctx, {
      everyMs: () => refreshMs(ctx),
      ask: () =>
        ctx.store.request("series", { of: { kind: "group", group }, ...span(ctx), points: POINTS }),
      show: (answer) => this.drawCharts(answer),
      failed: () => this.drawCharts({ t: [], columns: {} }),
    });
  }

  update(change: Change): void {
    if (change.has("hello")) {
      this.list.refresh();
      this.series.refresh();
    }
    this.time.update(change);
    const asked = this.ctx.route.query["q"] ?? "";
    if (
      change.has("route") &&
      asked !== this.search.value &&
      document.activeElement !== this.search
    ) {
      this.search.value = asked;
      this.list.refresh();
    }
  }

  draw(): void {
    const { topology, frame } = this.ctx.store.shown;
    const group = topology?.groupNamed(this.group);
    const nodes = (group?.nodes ?? [])
      .map((id) => topology?.node(id))
      .filter((node) => node !== undefined);
    const coordinator =
      group?.coordinator === null || group === undefined
        ? undefined
        : topology?.node(group.coordinator);
    const listed = stoppedAt(this.ctx) === null ? this.listedNow : null;
    const names = listed ?? (group === undefined ? null : namesOf(topology, frame, group));
    const key = JSON.stringify([
      topology === null,
      group,
      nodes.map((node) => [node.name, node.status]),
    ]);
    // It changes often, and the links beside it may have the focus.
    setText(this.held, count(names));
    if (key === this.described) return;
    this.described = key;
    if (!group) {
      fill(
        this.about,
        h(
          "p",
          { class: "muted" },
          topology === null ? "Waiting …" : "There was no such group at this time.",
        ),
      );
      return;
    }
    fill(
      this.about,
      facts([
        ["Names", this.held],
        [
          "Coordinator",
          coordinator
            ? nodeLink(this.ctx, coordinator.name)
            : h("span", { class: "muted" }, "none known"),
        ],
        [
          `${nodes.length} nodes`,
          h(
            "span",
            { class: "tags" },
            ...nodes.map((node) =>
              node.status === "up"
                ? nodeLink(this.ctx, node.name)
                : h(
                    "span",
                    { class: "tags", title: node.why ?? "" },
                    nodeLink(this.ctx, node.name),
                    h("span", { class: "tag" }, node.status),
                  ),
            ),
          ),
        ],
      ]),
    );
  }

  destroy(): void {
    clearTimeout(this.timer);
    this.time.destroy();
    this.list.destroy();
    this.series.destroy();
    this.rates.destroy();
    this.total.destroy();
    this.root.remove();
  }

  /** Lists what begins as what is typed now; what was looked up before is of another name. */
  private searched(): void {
    clearTimeout(this.timer);
    this.ctx.setQuery({ group: this.group, q: this.search.value });
    fill(this.found);
    this.list.refresh();
  }

  /**
   * Names with what is typed anywhere in them, where the group has few enough to look through; else
   * those that begin with it, which is what the server finds by itself.
   */
  private async askNames(): Promise<Listed> {
    const { ctx, group } = this;
    const typed = this.search.value;
    if (typed !== "" && !this.many) {
      const all = await ctx.store.request("names", { group, prefix: "", limit: LIMIT });
      this.many = all.more;
      if (!all.more) return containing(all, typed);
    }
    const found = await ctx.store.request("names", { group, prefix: typed, limit: LIMIT });
    if (typed === "") this.many = found.more;
    return found;
  }

  /** Only a probe tells names. */
  private isProbed(): boolean {
    const { topology, frame } = this.ctx.store.shown;
    const group = topology?.groupNamed(this.group);
    return group === undefined || namesOf(topology, frame, group) !== null;
  }

  private listed({ names, total, more }: Listed): void {
    const asked = this.search.value;
    this.listedNow = this.many || more ? null : total;
    this.draw();
    setText(
      this.counted,
      stoppedAt(this.ctx) !== null
        ? `${count(names.length)} now; names of earlier times are not kept`
        : more
          ? `the first ${count(names.length)} of ${count(total)}`
          : asked === ""
            ? `${count(names.length)}`
            : `${count(names.length)} of ${count(total)}`,
    );
    this.names.empty(
      asked === ""
        ? "No name is registered in this group."
        : `No name ${this.many ? "begins with" : "contains"} ${asked}. Text is written with its quotes: "text", 'Atom', {tuple,1}.`,
    );
    this.names.rows(names);
  }

  private async lookUp(): Promise<void> {
    const name = this.search.value.trim();
    if (name === "") return this.search.focus();
    try {
      const answer = (await this.ctx.store.request("lookup", {
        group: this.group,
        name,
      })) as Partial<NameRow>;
      fill(
        this.found,
        h(
          "p",
          { class: "note" },
          h("strong", {}, h("code", {}, answer.name ?? name)),
          " is ",
          h("code", {}, answer.pid ?? "a process"),
          answer.node ? " on " : null,
          answer.node ? nodeLink(this.ctx, answer.node) : null,
          answer.since
            ? h(
                "span",
                { title: dateTime(answer.since) },
                `, since ${ago(answer.since, shownTime(this.ctx))}`,
              )
            : null,
          ", in ",
          groupLink(this.ctx, this.group),
          ".",
        ),
      );
    } catch (error) {
      fill(this.found, h("p", { class: "note" }, level("warning"), ` ${messageOf(error)}`));
    }
  }

  private drawCharts({ t, columns }: Series): void {
    const known = RATES.filter(([key]) => columns[key] !== undefined);
    const range = chartSpan(this.ctx);
    this.rates.draw({
      t,
      series: known.map(([key, label]) => ({ key, label, values: columns[key] })),
      ...range,
    });
    const names = columns["names"];
    this.total.draw({
      t,
      series: names ? [{ key: "names", label: "names", values: names }] : [],
      ...range,
    });
  }
}
