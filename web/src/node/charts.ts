// SPDX-License-Identifier: Apache-2.0
// A node over time: utilisation, run queue, memory by kind, messages. Asked from the server's history.
import type { Ctx } from "../app/ctx";
import { type Chart, chart } from "../lib/chart";
import { card } from "../lib/parts";
import { periodChoice, POINTS, shownTime, span, stoppedAt } from "../lib/period";
import { Polled } from "../lib/polled";
import type { Series as Columns } from "../store/protocol";
import { MEMORY_KINDS } from "./detail_model";
import { h } from "../lib/dom";
import { byteRate, bytes, messageRate, number, share } from "../lib/format";

const EVERY_MS = 2000;

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
  private readonly memory: Polled<Columns>;
  private columns: Columns = { t: [], columns: {} };
  private kinds: Columns | null = null;

  constructor(
    private readonly ctx: Ctx,
    private readonly node: string,
  ) {
    const pick = (t: number) => ctx.store.seek(t);
    this.panels = [
      {
        title: "Utilisation",
        lines: [["util", "mean of the normal schedulers"]],
        chart: chart({ title: "Utilisation", format: share, max: 1, fixed: true, onPick: pick }),
      },
      {
        title: "Run queue",
        lines: [["run_queue", "processes waiting"]],
        chart: chart({ title: "Run queue", format: number, max: 4, onPick: pick }),
      },
      {
        title: "Memory by kind",
        lines: MEMORY_KINDS.map(([key, label]) => [`mem_${key}`, label] as const),
        chart: chart({ title: "Memory by kind", format: bytes, base: 1024, stacked: true, onPick: pick }),
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
    );
    const known = ctx.store.hello?.metrics ?? [];
    const metrics = this.panels
      .flatMap((panel) => panel.lines.map(([key]) => key))
      .filter((key) => !key.startsWith("mem_"));
    this.polled = new Polled(ctx, {
      everyMs: EVERY_MS,
      ask: () => this.ask(known.length > 0 ? metrics.filter((metric) => known.includes(metric)) : metrics),
      show: (answer) => {
        this.columns = answer;
        this.draw();
      },
    });
    this.memory = new Polled(ctx, {
      everyMs: EVERY_MS,
      ask: () => this.ask(["mem", ...MEMORY_KINDS.map(([key]) => `mem_${key}`)]),
      show: (answer) => {
        this.kinds = answer;
        this.draw();
      },
    });
  }

  refresh(): void {
    this.polled.refresh();
    this.memory.refresh();
  }

  destroy(): void {
    this.polled.destroy();
    this.memory.destroy();
    for (const panel of this.panels) panel.chart.destroy();
  }

  private ask(metrics: string[]): Promise<Columns> {
    return this.ctx.store.request("series", {
      of: { kind: "node", node: this.node, metrics },
      ...span(this.ctx),
      points: POINTS,
    });
  }

  private draw(): void {
    const { from, to } = span(this.ctx);
    const mark = stoppedAt(this.ctx) === null ? null : shownTime(this.ctx);
    for (const panel of this.panels) {
      const ofMemory = panel.lines[0][0].startsWith("mem_");
      const source = ofMemory ? memoryColumns(this.kinds) : this.columns;
      const lines = panel.lines.filter(([key]) => source.columns[key]?.some((value) => value !== null));
      const shown = lines.length > 0 ? lines : ofMemory ? ([["mem", "all kinds"]] as const) : [];
      panel.chart.draw({
        t: source.t,
        series: shown.map(([key, label]) => ({ key, label, values: source.columns[key] ?? [] })),
        from,
        to,
        mark,
      });
    }
  }
}

/** OTP's system memory without the kinds that it contains, so that the areas add up. */
function memoryColumns(answer: Columns | null): Columns {
  if (answer === null) return { t: [], columns: {} };
  const { columns, t } = answer;
  const system = columns["mem_system"];
  if (!system) return answer;
  const parts = ["mem_binary", "mem_ets", "mem_atom", "mem_code"].map((key) => columns[key] ?? []);
  const own = system.map((value, i) =>
    value === null ? null : Math.max(0, value - parts.reduce((sum, part) => sum + (part[i] ?? 0), 0)),
  );
  return { t, columns: { ...columns, mem_system: own } };
}
