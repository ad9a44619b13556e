// SPDX-License-Identifier: Apache-2.0
// Dirty schedulers in a row of their own: they share one queue for each kind, so the queue is one number.
import type { SchedulerDetail } from "../../model/protocol";
import { queueStep } from "./scheduler-ring";
import { children as fill, h, styled, text as setText } from "../../lib/dom";
import { number, share } from "../../lib/format";

const KINDS = [
  ["dirty_cpu", "Dirty CPU"],
  ["dirty_io", "Dirty IO"],
] as const;

export class DirtyView {
  readonly root = h("div", { class: "dirty" });
  private readonly rows = KINDS.map(([type, label]) => {
    const cells = h("div", { class: "dirty-cells" });
    const queue = h("span", { class: "num" });
    const root = h(
      "div",
      { class: "dirty-row" },
      h("span", { class: "dirty-label" }, label),
      cells,
      queue,
    );
    this.root.append(root);
    return { type, root, cells, queue };
  });

  /** `queues` are those of the dirty schedulers: CPU, then IO; null where they are not known. */
  draw(schedulers: readonly SchedulerDetail[], queues: readonly (number | null)[]): void {
    this.rows.forEach((row, i) => {
      const mine = schedulers.filter((one) => one.type === row.type);
      row.root.hidden = mine.length === 0 && (queues[i] ?? null) === null;
      if (row.cells.childElementCount !== mine.length) fill(row.cells, ...mine.map(cell));
      mine.forEach((one, at) => {
        const element = row.cells.children[at] as HTMLElement;
        const util = typeof one.util === "number" ? one.util : null;
        element.title = `${row.type.replace("_", " ")} scheduler ${one.id}: utilisation ${share(util)}`;
        element.classList.toggle("unknown", util === null);
        styled(
          element.firstElementChild as HTMLElement,
          "height",
          `${((util ?? 0) * 100).toFixed(0)}%`,
        );
      });
      const queue = queues[i] ?? null;
      row.queue.className = `num ${queue !== null && queue > 0 ? `queue-text q${queueStep(queue)}` : "muted"}`;
      setText(row.queue, queue === null ? "run queue unknown" : `run queue ${number(queue)}`);
    });
  }
}

const cell = (): HTMLElement => h("span", { class: "dirty-cell" }, h("i", { class: "dirty-fill" }));
