// SPDX-License-Identifier: Apache-2.0
// The processes with the longest queues, the most memory and the most work; one can be asked for in detail.
import type { Ctx } from "../../ui/ctx";
import { card, dialog, facts, note } from "../../ui/parts";
import { type Table, table } from "../../lib/table";
import type { ProcessRow } from "../../model/protocol";
import { children as fill, h } from "../../lib/dom";
import { measure } from "../../lib/columns";
import { bytes, count, number, withUnit, messageOf } from "../../lib/format";

const NONE = "No process stands out, or the node has not listed them yet.";

export class Processes {
  readonly root: HTMLElement;
  private readonly table: Table<ProcessRow>;

  constructor(
    private readonly ctx: Ctx,
    private readonly node: string,
  ) {
    this.table = table<ProcessRow>({
      caption: "Top processes",
      id: (row) => row.pid,
      order: { key: "queue", direction: "descending" },
      maxHeight: "23rem",
      empty: NONE,
      columns: [
        { key: "pid", label: "Process", value: (row) => row.pid, width: "7rem", wide: true },
        { key: "name", label: "Name", value: (row) => row.name || row.initial, show: named },
        measure("queue", "Messages", (row) => row.queue, count, {
          width: "6rem",
          narrow: "5rem",
          hint: "Messages in its queue",
        }),
        measure("memory", "Memory", (row) => row.memory, bytes, { width: "7rem", narrow: "6rem" }),
        measure("reds", "Reductions/s", (row) => row.reds_per_s, number, {
          width: "8rem",
          wide: true,
          hint: "Work done: one reduction is about one function call",
        }),
      ],
      onChoose: (row) => void this.open(row),
    });
    this.root = card(
      "Top processes",
      {
        hint: "Those with most messages, memory or reductions. Choose one to see more.",
        testid: "processes",
      },
      this.table.root,
    );
  }

  draw(rows: readonly ProcessRow[] | undefined, stock: boolean): void {
    this.table.empty(
      stock ? "A stock node is not asked for its processes: that would cost it much." : NONE,
    );
    this.table.rows(rows ?? []);
  }

  private async open(row: ProcessRow): Promise<void> {
    const body = h("div", {}, h("p", { class: "muted" }, "Asking the node …"));
    dialog(row.name ? `${row.name}  ${row.pid}` : row.pid, body);
    try {
      fill(
        body,
        processFacts(await this.ctx.store.request("process", { node: this.node, pid: row.pid })),
      );
    } catch (error) {
      const message = messageOf(error);
      fill(
        body,
        note(`The node gave no answer (${message}). The list had:`),
        processFacts({ ...row }),
      );
    }
  }
}

const named = (row: ProcessRow): HTMLElement =>
  row.name
    ? h("span", { title: row.initial }, row.name)
    : h("span", { class: "muted", title: "Not registered; its first call" }, row.initial);

const UNITS: Record<string, string> = {
  memory: "bytes",
  total_heap_size: "words",
  stack_size: "words",
  reds_per_s: "/s",
};
/** In this order; whatever else the node tells follows. */
const FIRST = [
  "pid",
  "name",
  "initial",
  "current",
  "status",
  "queue",
  "memory",
  "reds_per_s",
  "reductions",
];
const LABELS: Record<string, string> = {
  initial: "first call",
  current: "now in",
  queue: "message queue",
  reds_per_s: "reductions",
  reductions: "reductions in all",
  gc: "minor collections",
};

function processFacts(told: Record<string, unknown>): HTMLElement {
  const rank = (key: string) => (FIRST.includes(key) ? FIRST.indexOf(key) : FIRST.length);
  const known = Object.entries(told).filter(([, value]) => value !== null && value !== "");
  return facts(
    known
      .sort(([a], [b]) => rank(a) - rank(b))
      .map(([key, value]) => [LABELS[key] ?? key.replaceAll("_", " "), factValue(key, value)]),
  );
}

function factValue(key: string, value: unknown): Node | string {
  if (Array.isArray(value) && value.length > 0) {
    const items = value.map((one) => h("li", {}, h("code", {}, withUnit(one, null))));
    return h("ul", { class: "fact-list" }, ...items);
  }
  const text = withUnit(value, UNITS[key]);
  return typeof value === "number" ? h("span", { class: "num" }, text) : h("code", {}, text);
}
