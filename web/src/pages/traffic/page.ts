// SPDX-License-Identifier: Apache-2.0
// Who sends how much to whom: by link, group edge, gateway and group, with percentiles over the time chosen.
import type { Ctx, MountedPage, Page } from "../../ui/ctx";
import type { Change } from "../../store/signals";
import { type Chart, chart } from "../../lib/chart";
import { type Choice, choice, searchKey } from "../../ui/parts";
import { exportButton } from "../../ui/exporting";
import {
  chartSpan,
  periodChoice,
  periodOf,
  POINTS,
  refreshMs,
  span,
  stoppedAt,
} from "../../ui/period";
import { TimeWatch } from "../../ui/time-watch";
import { Polled } from "../../ui/polled";
import { type Column, type Table, table } from "../../lib/table";
import {
  ALSO,
  BY,
  type By,
  byOf,
  gatewaySums,
  NO_GROUPS,
  of,
  rowId,
  seriesFor,
  sourceOf,
  summary,
  sums,
} from "./model";
import { Kinds } from "../../ui/kinds";
import { labeller } from "../../model/node-names";
import type { Series, TrafficRow } from "../../model/protocol";
import type { Topology } from "../../model/topology";
import "../../styles/data.css";
import "./traffic.css";
import { measure } from "../../lib/columns";
import { children as fill, h, text as setText } from "../../lib/dom";
import { byteRate, bytes, count, messageRate, number } from "../../lib/format";

/** Where there are no rows. */
const EMPTY: Partial<Record<By, string>> = {
  edge: "Nothing went between groups in this time.",
  gateway: "No gateway sent or received anything in this time.",
  group: "Nothing went between members of a group in this time.",
  routed: "No gateway with a probe passed on a routed message in this time.",
};

export const page: Page = {
  mount: (root, ctx) => new TrafficPage(root, ctx),
};

class TrafficPage implements MountedPage {
  private by: By;
  private chosen: string | null;
  private rows: readonly TrafficRow[] = [];
  /** What else was asked for (ALSO). */
  private also: readonly TrafficRow[] = [];
  private table: Table<TrafficRow>;
  private readonly tableRoot = h("div", {});
  private readonly failure = h("p", { class: "note", hidden: true });
  private readonly switch: Choice<By>;
  private readonly hint = h("p", { class: "muted" });
  private readonly title = h("h2", {});
  private readonly whole: HTMLButtonElement;
  private readonly messages: Chart;
  private readonly bytes: Chart;
  private readonly kinds = new Kinds();
  private readonly sum = h("p", {
    class: "muted num",
    role: "status",
    "data-testid": "traffic-sum",
  });
  private readonly traffic: Polled<{ rows: TrafficRow[]; also: TrafficRow[] }>;
  private readonly series: Polled<Series>;
  private readonly release: () => void;
  private labels: { topology: Topology | null; of: (name: string) => string } | null = null;
  private readonly time: TimeWatch;

  constructor(
    private readonly root: HTMLElement,
    private readonly ctx: Ctx,
  ) {
    this.by = byOf(ctx.route.query["by"]);
    this.chosen = ctx.route.query["row"] ?? null;
    const pick = (t: number) => ctx.store.seek(t);
    this.messages = chart({
      title: "Messages over time",
      format: messageRate,
      max: 10,
      onPick: pick,
      height: 140,
    });
    this.bytes = chart({
      title: "Bytes over time",
      format: byteRate,
      base: 1024,
      max: 1024,
      onPick: pick,
      height: 140,
    });
    this.whole = h(
      "button",
      { type: "button", class: "button", hidden: true, click: () => this.choose(null) },
      "Show all traffic",
    );
    this.switch = choice(
      "Traffic by",
      BY.map(([key, label]) => [key, label] as const),
      this.by,
      (by) => {
        this.by = by;
        this.chosen = null;
        ctx.setQuery({ by, row: "", q: "" });
        this.rebuild();
      },
    );
    this.table = this.makeTable();
    root.append(
      h(
        "section",
        { class: "card", "aria-label": "Over time" },
        h(
          "div",
          { class: "card-head" },
          h(
            "div",
            {},
            this.title,
            h(
              "p",
              { class: "muted" },
              "Choose a row below to see it here, a point to go back to its time.",
            ),
          ),
          h(
            "div",
            { class: "card-tools" },
            this.whole,
            periodChoice(ctx, () => this.refresh()),
          ),
        ),
        h("div", { class: "traffic-charts" }, this.messages.root, this.bytes.root),
      ),
      h(
        "section",
        { class: "card", "aria-label": "Traffic" },
        h(
          "div",
          { class: "card-head" },
          h("div", {}, h("h2", {}, "Traffic"), this.hint),
          h(
            "div",
            { class: "card-tools" },
            this.switch.root,
            exportButton(ctx, "This table as a CSV file", () => ({ what: "traffic", by: this.by })),
          ),
        ),
        this.failure,
        this.tableRoot,
        this.sum,
      ),
      this.kinds.root,
    );
    this.traffic = new Polled(ctx, {
      everyMs: () => refreshMs(ctx),
      ask: async () => {
        const t = stoppedAt(ctx);
        const window = { window_s: periodOf(ctx), ...(t === null ? {} : { t }) };
        const part = ALSO[this.by];
        const [{ rows }, also] = await Promise.all([
          ctx.store.request("traffic", { by: this.by, ...window }),
          part === undefined ? null : ctx.store.request("traffic", { by: part, ...window }),
        ]);
        return { rows, also: also?.rows ?? [] };
      },
      show: ({ rows, also }) => {
        this.failure.hidden = true;
        this.rows = rows;
        this.also = also;
        this.draw();
      },
      failed: (message) => this.failed(message),
    });
    this.series = new Polled(ctx, {
      everyMs: () => refreshMs(ctx),
      ask: () =>
        ctx.store.request("series", {
          of: seriesFor(this.by, this.chosen),
          ...span(ctx),
          points: POINTS,
        }),
      show: (answer) => this.drawCharts(answer),
      failed: () => this.drawCharts({ t: [], columns: {} }),
    });
    this.time = new TimeWatch(ctx, () => this.refresh());
    this.release = searchKey(ctx, root);
    this.rebuild();
  }

  update(change: Change): void {
    if (change.has("frame")) this.kinds.draw(this.ctx.store.shown.frame?.kinds);
    if (change.has("hello")) this.refresh();
    this.time.update(change);
    if (change.has("route")) {
      const by = byOf(this.ctx.route.query["by"]);
      const row = this.ctx.route.query["row"] ?? null;
      if (by === this.by && row === this.chosen) return;
      this.by = by;
      this.chosen = row;
      this.switch.choose(by);
      this.rebuild();
    }
  }

  destroy(): void {
    this.release();
    this.time.destroy();
    this.traffic.destroy();
    this.series.destroy();
    this.messages.destroy();
    this.bytes.destroy();
    this.root.replaceChildren();
  }

  private refresh(): void {
    this.traffic.refresh();
    this.series.refresh();
  }

  /** Another kind of rows: other columns, and nothing of the old ones. */
  private rebuild(): void {
    this.rows = [];
    this.also = [];
    this.sum.hidden = true;
    this.table = this.makeTable();
    this.table.empty("Asking …");
    fill(this.tableRoot, this.table.root);
    setText(this.hint, BY.find(([key]) => key === this.by)?.[2] ?? "");
    this.table.mark(this.chosen);
    this.drawTitle();
    this.kinds.draw(this.ctx.store.shown.frame?.kinds);
    this.refresh();
  }

  private choose(row: string | null): void {
    this.chosen = row === this.chosen ? null : row;
    this.ctx.setQuery({ by: this.by, row: this.chosen ?? "" });
    this.table.mark(this.chosen);
    this.drawTitle();
    this.series.refresh();
    if (this.chosen !== null) this.root.scrollTo({ top: 0 });
  }

  private drawTitle(): void {
    setText(this.title, this.chosen === null ? "All traffic" : of(this.by, this.chosen));
    this.whole.hidden = this.chosen === null;
  }

  private failed(message: string): void {
    this.failure.hidden = false;
    setText(this.failure, message);
    this.table.empty("Nothing could be read.");
  }

  private draw(): void {
    this.table.empty(EMPTY[this.by] ?? "No traffic was measured in this time.");
    this.table.rows(this.rows);
    this.table.mark(this.chosen);
    this.drawSum();
  }

  private drawSum(): void {
    const words = summary(this.by, this.rows, this.also, this.ctx.store.recording !== null);
    this.sum.hidden = words === null;
    setText(this.sum, words ?? "");
  }

  /** What a node is called where there is little room. */
  private short(name: string): string {
    const { topology } = this.ctx.store.shown;
    if (this.labels?.topology !== topology) {
      const names = topology?.nodes.map((node) => node.name) ?? [];
      this.labels = { topology, of: labeller(names) };
    }
    return this.labels?.of(name) ?? name;
  }

  private drawCharts(answer: Series): void {
    const range = chartSpan(this.ctx);
    const lines = (pattern: RegExp) =>
      Object.keys(answer.columns)
        .filter((key) => pattern.test(key))
        .map((key) => ({
          key,
          label: LABELS[key] ?? key.replaceAll("_", " "),
          values: answer.columns[key],
        }));
    this.messages.draw({ t: answer.t, series: lines(/msgs_s$/), ...range });
    // The bytes of routed messages are not counted.
    this.bytes.root.hidden = this.by === "routed" && this.chosen !== null;
    this.bytes.draw({ t: answer.t, series: lines(/bytes_s$/), ...range });
  }

  private makeTable(): Table<TrafficRow> {
    const { ctx, by } = this;
    const ofGroups = by === "edge" || by === "group" || by === "routed";
    const place = (name: string): HTMLElement | string => {
      if (ofGroups && Object.hasOwn(NO_GROUPS, name)) return NO_GROUPS[name];
      // A node that is linked and not watched has no page.
      const topology = ofGroups ? null : ctx.store.shown.topology;
      if (topology !== null && topology.nodeNamed(name) === undefined)
        return h("span", { class: "place muted", title: "A hidden node: it is not watched" }, name);
      const href = ctx.href(ofGroups ? "groups" : "node", name);
      const short = ofGroups ? name : this.short(name);
      if (short === name) return h("a", { class: "place", href }, name);
      return h(
        "a",
        { class: "place", href, title: name },
        h("span", { class: "long" }, name),
        h("span", { class: "short", "aria-hidden": "true" }, short),
      );
    };
    const pair = by === "link" || by === "edge" || by === "routed";

    const first = {
      link: "From",
      edge: "From",
      gateway: "Gateway",
      group: "Group",
      routed: "From",
    }[by];
    const second: Column<TrafficRow>[] = pair
      ? [
          {
            key: "to",
            label: "To",
            value: (row) => row.to ?? null,
            show: (row) => place(row.to ?? "–"),
          },
        ]
      : by === "gateway"
        ? [
            {
              key: "to",
              label: "Groups",
              value: (row) => (row.groups ?? []).join(", "),
              wide: true,
            },
          ]
        : [];
    // The bytes of routed messages are not counted.
    const sized = <T>(one: T): T[] => (by === "routed" ? [] : [one]);
    const names: Column<TrafficRow>[] = [
      { key: "from", label: first, value: sourceOf, show: (row) => place(sourceOf(row)) },
      ...second,
    ];
    const ofTime = (key: "p50" | "p95" | "max", label: string, hint: string) =>
      measure(key, label, (row: TrafficRow) => row[key], number, {
        width: "5.2rem",
        wide: true,
        hint,
      });
    return table<TrafficRow>({
      caption: "Traffic",
      id: rowId,
      order: { key: ctx.route.query["sort"] ?? "msgs_s", direction: "descending" },
      onOrder: (order) => ctx.setQuery({ sort: order.key === "msgs_s" ? "" : order.key }),
      filter: ctx.route.query["q"] ?? "",
      onFilter: (words) => ctx.setQuery({ q: words }),
      filterText: (row) => `${sourceOf(row)} ${row.to ?? ""} ${(row.groups ?? []).join(" ")}`,
      maxHeight: "max(20rem, calc(100dvh - 26rem))",
      onChoose: (row) => this.choose(rowId(row)),
      columns: [
        ...names,
        measure("msgs_s", "msg/s", (row) => row.msgs_s, number, {
          width: "5.2rem",
          hint: "Messages a second, mean over the time chosen",
        }),
        ofTime("p50", "p50", "msg/s: half of the time below this"),
        ofTime("p95", "p95", "msg/s: 95 % of the time below this"),
        ofTime("max", "Max.", "msg/s: the most in the time chosen"),
        ...(by === "gateway"
          ? [
              measure("forwarded_s", "Forwarded", (row: TrafficRow) => row.forwarded_s, number, {
                width: "6.2rem",
                hint: "Routed messages a second that it passed on for others: each is one that came and one that went, both in msg/s. Unknown without a probe",
              }),
            ]
          : []),
        ...sized(
          measure("bytes_s", "Bytes/s", (row: TrafficRow) => row.bytes_s, bytes, {
            width: "5.8rem",
            wide: pair || by === "gateway",
            hint: "Bytes a second, mean over the time chosen",
          }),
        ),
        measure("msgs", "Messages", (row) => row.msgs, count, {
          width: "7.5rem",
          wide: true,
          hint: "All messages of the time chosen",
        }),
        ...sized(
          measure("bytes", "Bytes", (row: TrafficRow) => row.bytes, bytes, {
            width: "6rem",
            wide: true,
            hint: "All bytes of the time chosen",
          }),
        ),
      ],
      totals: (rows) => {
        const sum = by === "gateway" ? gatewaySums(rows, this.also) : sums(rows);
        const label = rows.length === 1 ? "1 row" : `Total of ${count(rows.length)} rows`;
        return [
          label,
          ...second.map(() => null),
          number(sum.msgs_s),
          null,
          null,
          null,
          ...(by === "gateway" ? [number(sum.forwarded_s)] : []),
          ...sized(bytes(sum.bytes_s)),
          count(sum.msgs),
          ...sized(bytes(sum.bytes)),
        ];
      },
    });
  }
}

const LABELS: Record<string, string> = {
  msgs_s: "messages",
  bytes_s: "bytes",
  in_msgs_s: "received",
  out_msgs_s: "sent",
  in_bytes_s: "received",
  out_bytes_s: "sent",
};
