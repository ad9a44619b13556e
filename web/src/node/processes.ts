// SPDX-License-Identifier: Apache-2.0
// The processes with the longest queues, the most memory and the most work; one can be asked for in detail.
import type { Ctx } from "../app/ctx";
import { card, dialog, facts, note } from "../lib/parts";
import { type Table, table } from "../lib/table";
import type { ProcessRow } from "../store/protocol";
import { children as fill, h } from "../lib/dom";
import { bytes, count, rate, withUnit } from "../lib/format";

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
      empty: "No process stands out, or they were not listed yet.",
      columns: [
        { key: "pid", label: "Process", value: (row) => row.pid, width: "7rem", wide: true },
        { key: "name", label: "Name", value: (row) => row.name || row.initial, show: named },
        {
          key: "queue",
          label: "Queue",
          hint: "Messages waiting in its queue",
          value: (row) => row.queue,
          show: (row) => count(row.queue),
          numeric: true,
          width: "6rem",
        },
        {
          key: "memory",
          label: "Memory",
          value: (row) => row.memory,
          show: (row) => bytes(row.memory),
          numeric: true,
          width: "7rem",
        },
        {
          key: "reds",
          label: "Reductions/s",
          hint: "Work done: about one function call each",
          value: (row) => row.reds_per_s,
          show: (row) => rate(row.reds_per_s),
          numeric: true,
          width: "8rem",
          wide: true,
        },
      ],
      onChoose: (row) => void this.open(row),
    });
    this.root = card(
      "Top processes",
      { hint: "By message queue, memory and reductions. Choose one to see more.", testid: "processes" },
      this.table.root,
    );
  }

  draw(rows: readonly ProcessRow[] | undefined, unknown: string | null): void {
    if (unknown !== null) this.table.empty(unknown);
    this.table.rows(rows ?? []);
  }

  private async open(row: ProcessRow): Promise<void> {
    const body = h("div", {}, h("p", { class: "muted" }, "Asking the node …"));
    dialog(row.name ? `${row.name}  ${row.pid}` : row.pid, body);
    try {
      const answer = await this.ctx.store.request("process", { node: this.node, pid: row.pid });
      fill(
        body,
        facts(
          Object.entries(answer).map(([key, value]) => [key.replaceAll("_", " "), factValue(key, value)]),
        ),
      );
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error);
      fill(
        body,
        note(`The node did not tell: ${message}`),
        facts(Object.entries(row).map(([key, value]) => [key, factValue(key, value)])),
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
  heap_size: "words",
  total_heap_size: "words",
  stack_size: "words",
  reds_per_s: "/s",
};

function factValue(key: string, value: unknown): Node | string {
  if (Array.isArray(value) && value.length > 0) {
    return h(
      "ul",
      { class: "fact-list" },
      ...value.map((one) => h("li", {}, h("code", {}, withUnit(one, null)))),
    );
  }
  const text = withUnit(value, UNITS[key]);
  return typeof value === "number" ? h("span", { class: "num" }, text) : h("code", {}, text);
}
