// SPDX-License-Identifier: Apache-2.0
// A node over time: utilisation, run queue, memory by kind, messages. Asked from the server's history.
import type { Ctx } from "../../ui/ctx";
import { type Chart, chart } from "../../lib/chart";
import { card } from "../../ui/parts";
import { chartSpan, periodChoice, POINTS, refreshMs, seekShown, span } from "../../ui/period";
import { Polled } from "../../ui/polled";
import type { Series as Columns } from "../../model/protocol";
import { h } from "../../lib/dom";
import { byteRate, bytes, messageRate, number, share } from "../../lib/format";

interface Panel {
  title: string;
  chart: Chart;
  /** Columns and their labels; those that no answer has are left out. */
  lines: readonly (readonly [string, string])[];
}

export class NodeCharts {
  readonly root: HTMLElement;
  private readonly panels: Panel[];
  private readonly polled: Polled<Columns>;
  private columns: Columns = { t: [], columns: {} };

  /** `below` stands under the charts and has their time. */
  constructor(
    private readonly ctx: Ctx,
    private readonly node: string,
    below: HTMLElement,
  ) {
    const pick = (t: number) => seekShown(ctx, t);
    this.panels = [
      {
        title: "Utilisation",
        lines: [["util", "mean of the normal schedulers"]],
        chart: chart({ title: "Utilisation", format: share, max: 1, fixed: true, onPick: pick }),
      },
      {
        title: "Run queue",
        lines: [["run_queue", "processes"]],
        chart: chart({ title: "Run queue", format: number, max: 4, onPick: pick }),
      },
      {
        title: "Memory by kind",
        lines: MEMORY,
        chart: chart({
          title: "Memory by kind",
          format: bytes,
          base: 1024,
          stacked: true,
          onPick: pick,
        }),
      },
      {
        title: "Messages",
        lines: [
          ["out_msgs_s", "sent"],
          ["in_msgs_s", "received"],
        ],
        chart: chart({
          title: "Messages to and from other nodes",
          format: messageRate,
          max: 10,
          onPick: pick,
        }),
      },
      {
        title: "Bytes",
        lines: [
          ["out_bytes_s", "sent"],
          ["in_bytes_s", "received"],
        ],
        chart: chart({
          title: "Bytes to and from other nodes",
          format: byteRate,
          base: 1024,
          max: 1024,
          onPick: pick,
        }),
      },
      {
        title: "Processes",
        lines: [["procs", "processes"]],
        chart: chart({ title: "Processes", format: number, max: 100, onPick: pick }),
      },
    ];
    const tools = [periodChoice(ctx, () => this.refresh())];
    this.root = card(
      "Over time",
      { hint: "Choose a point to go back to its time.", tools, class: "wide-card" },
      h(
        "div",
        { class: "chart-grid-cards" },
        ...this.panels.map((panel) => h("div", {}, h("h3", {}, panel.title), panel.chart.root)),
      ),
      below,
    );
    this.polled = new Polled(ctx, {
      everyMs: () => refreshMs(ctx),
      ask: () => this.ask(),
      show: (answer) => {
        this.columns = withOther(answer);
        this.draw();
      },
    });
  }

  refresh(): void {
    this.polled.refresh();
  }

  destroy(): void {
    this.polled.destroy();
    for (const panel of this.panels) panel.chart.destroy();
  }

  private ask(): Promise<Columns> {
    // A server may keep less than this page can show, and refuses a question for what it does not know.
    const known = Object.keys(this.ctx.store.hello?.units ?? {});
    const wanted = [
      ...new Set([...this.panels.flatMap((panel) => panel.lines.map(([key]) => key)), "mem"]),
    ];
    const metrics = wanted.filter((key) => known.includes(key));
    if (metrics.length === 0) return Promise.resolve({ t: [], columns: {} });
    return this.ctx.store.request("series", {
      of: { kind: "node", node: this.node, metrics },
      ...span(this.ctx),
      points: POINTS,
    });
  }

  private draw(): void {
    const { t, columns } = this.columns;
    const range = chartSpan(this.ctx);
    for (const { chart: drawing, lines } of this.panels) {
      const known = lines.filter(([key]) => columns[key]?.some((value) => value !== null));
      // Of a stock node at least the whole memory is known.
      const shown =
        known.length > 0 || lines !== MEMORY ? known : ([["mem", "all kinds"]] as const);
      const series = shown.map(([key, label]) => ({ key, label, values: columns[key] ?? [] }));
      drawing.draw({ t, series, ...range });
    }
  }
}

/** The kinds of memory of which a history is kept, and what is left of the whole. */
const MEMORY = [
  ["mem_processes", "Processes"],
  ["mem_binary", "Binaries"],
  ["mem_ets", "ETS"],
  ["mem_other", "Code, atoms, other"],
] as const;

function withOther(answer: Columns): Columns {
  const { t, columns } = answer;
  const parts = MEMORY.map(([key]) => columns[key]).filter((part) => part !== undefined);
  const whole = columns["mem"];
  if (!whole || parts.every((part) => part.every((value) => value === null))) return answer;
  const other = whole.map((value, i) =>
    value === null
      ? null
      : Math.max(0, value - parts.reduce((sum, part) => sum + (part[i] ?? 0), 0)),
  );
  return { t, columns: { ...columns, mem_other: other } };
}
