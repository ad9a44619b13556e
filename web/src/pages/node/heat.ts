// SPDX-License-Identifier: Apache-2.0
// Each scheduler's utilisation over time: a row a scheduler, the darker the busier. From the details that came while
// the page was open, for the history keeps only their mean. On a canvas: it is many small cells.
import type { Ctx } from "../../ui/ctx";
import { h, set, text as setText } from "../../lib/dom";
import { clock, share } from "../../lib/format";
import { span } from "../../ui/period";
import type { Detail } from "../../model/protocol";
import { schedulersOf } from "./detail-model";

const ROWS_PX = 160;
const LEFT = 34;
/** A report stands for the time since the one before, and for at most so long; what is before that is not known. */
const MOST_MS = 5000;

interface Cell {
  from: number;
  to: number;
  utils: readonly (number | null)[];
}

/** Cells of the reports in a time, oldest first; one that is followed late ends before. */
export function cells(details: readonly Detail[], from: number, to: number): Cell[] {
  const found: Cell[] = [];
  details.forEach((detail, i) => {
    // A report is about the time before it.
    const before = details[i - 1]?.t ?? detail.t - 1000;
    const start = Math.max(before, detail.t - MOST_MS);
    if (detail.t < from || start > to) return;
    const utils = schedulersOf(detail)
      .all.filter((one) => one.type === "normal")
      .map((one) => one.util ?? null);
    found.push({ from: Math.max(start, from), to: Math.min(detail.t, to), utils });
  });
  return found;
}

export class Heat {
  readonly root: HTMLElement;
  private readonly canvas = h("canvas", {
    class: "heat",
    role: "img",
    "aria-label": "Utilisation of each scheduler",
  });
  private readonly said = h("span", { class: "num muted" }, "Point at a cell.");
  private drawn: { cells: Cell[]; from: number; to: number; rows: number } = {
    cells: [],
    from: 0,
    to: 1,
    rows: 0,
  };

  constructor(private readonly ctx: Ctx) {
    this.root = h(
      "div",
      { class: "heat-panel", hidden: true },
      h("h3", {}, "Utilisation of each scheduler, while this page is open"),
      this.canvas,
      h(
        "div",
        { class: "row heat-legend" },
        h("span", { class: "muted" }, "0 %"),
        h("i", { class: "heat-scale" }),
        h("span", { class: "muted" }, "100 %"),
        this.said,
      ),
    );
    this.canvas.addEventListener("pointermove", (event) => this.point(event));
    this.canvas.addEventListener("pointerleave", () => setText(this.said, ""));
  }

  draw(details: readonly Detail[]): void {
    const { from, to } = span(this.ctx);
    const found = cells(details, from, to);
    const rows = Math.max(0, ...found.map((one) => one.utils.length));
    const measured = found.some((one) => one.utils.some((util) => util !== null));
    this.root.hidden = !measured;
    if (!measured) return;
    this.drawn = { cells: found, from, to, rows };
    const last = found[found.length - 1].utils
      .map((util, i) => `${i + 1}: ${share(util)}`)
      .join(", ");
    set(this.canvas, "aria-label", `Utilisation of each scheduler, at last ${last}`);
    this.paint();
  }

  private paint(): void {
    const { cells: found, from, to, rows } = this.drawn;
    const width = this.canvas.clientWidth;
    const ratio = window.devicePixelRatio || 1;
    const pen = this.canvas.getContext("2d");
    if (!pen || width <= LEFT) return;
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(ROWS_PX * ratio);
    pen.scale(ratio, ratio);
    const { palette } = this.ctx;
    const row = ROWS_PX / rows;
    const x = (t: number) => LEFT + ((t - from) / (to - from)) * (width - LEFT);
    pen.strokeStyle = palette.line;
    pen.strokeRect(LEFT - 0.5, 0.5, width - LEFT, ROWS_PX - 1);
    pen.fillStyle = palette.accent;
    for (const cell of found) {
      const left = x(cell.from);
      const size = Math.max(0.5, x(cell.to) - left);
      cell.utils.forEach((util, i) => {
        if (util === null) return;
        pen.globalAlpha = 0.04 + 0.96 * Math.min(1, Math.max(0, util));
        pen.fillRect(left, i * row, size + 0.3, Math.max(0.5, row - (row > 4 ? 1 : 0)));
      });
    }
    pen.globalAlpha = 1;
    pen.fillStyle = palette.muted;
    pen.font = `11px ${palette.font}`;
    pen.textAlign = "right";
    pen.textBaseline = "middle";
    const step = Math.max(1, Math.ceil(14 / row));
    for (let i = 0; i < rows; i += step)
      pen.fillText(String(i + 1), LEFT - 7, Math.max(6, (i + 0.5) * row));
  }

  private point(event: PointerEvent): void {
    const { cells: found, from, to, rows } = this.drawn;
    const box = this.canvas.getBoundingClientRect();
    const t = from + ((event.clientX - box.left - LEFT) / (box.width - LEFT)) * (to - from);
    const i = Math.floor(((event.clientY - box.top) / ROWS_PX) * rows);
    const cell = found.find((one) => t >= one.from && t <= one.to);
    const known = cell !== undefined && i >= 0 && i < cell.utils.length;
    setText(this.said, known ? `scheduler ${i + 1} at ${clock(t)}: ${share(cell.utils[i])}` : "");
  }
}
