// SPDX-License-Identifier: Apache-2.0
// The time line on its canvas.
import type { Palette } from "../../../ui/theme";
import { visible } from "../../../lib/visible";
import type { Arrow, Lane, Node, Segment, Window } from "../answers";
import {
  graphTop,
  type Heights,
  heightsOf,
  type Layout,
  type Row,
  stack,
  visibleIntervals,
} from "./lanes";
import { paintMarks } from "./marks";
import type { Marks } from "./marks-model";
import { paintArrows, paintPath } from "./overlay";
import { place, type Range, span, tickLabel, ticks } from "../range";

export interface Picture {
  palette: Palette;
  layout: Layout;
  range: Range;
  window: Window | null;
  online: number | null;
  nodes: readonly Node[];
  ratio: number;
  /** The process whose details are open. */
  marked: number | null;
  /** Where the pointer is, in the picture. */
  x: number | null;
  row: Row | null;
  /** What is being chosen by a drag, as places. */
  brush: [number, number] | null;
  /** The critical path, if it is shown, and messages. */
  path: readonly Segment[];
  arrows: readonly Arrow[];
  /** Operations on groups, and the moment of them that is shown. */
  marks: Marks | null;
  moment: number | null;
  ring: boolean;
}

/** Colours are never the only sign: a run has the full height, what could run stands on it, a wait is a thin line. */
export const colors = (p: Palette) => ({
  running: p.ok,
  runnable: p.warning,
  waiting: p.faint,
  gc: p.accent,
  exiting: p.critical,
});

export function paint(c: CanvasRenderingContext2D, p: Picture): void {
  const { layout, palette } = p;
  c.setTransform(p.ratio, 0, 0, p.ratio, 0, 0);
  c.clearRect(0, 0, layout.left + layout.width, layout.height);
  paintAxis(c, p);
  c.save();
  c.beginPath();
  c.rect(layout.left, 0, layout.width, layout.height);
  c.clip();
  c.translate(layout.left, 0);
  paintGraph(c, p);
  for (const row of layout.rows) paintRow(c, p, row);
  paintPath(c, p);
  paintArrows(c, p);
  paintMarks(c, p);
  paintPointer(c, p);
  c.restore();
  paintLabels(c, p);
  if (p.ring) {
    c.strokeStyle = palette.accent;
    c.lineWidth = 2;
    c.strokeRect(1, 1, layout.left + layout.width - 2, layout.height - 2);
  }
}

function paintAxis(c: CanvasRenderingContext2D, { layout, palette, range }: Picture): void {
  const { at, step } = ticks(range, Math.max(2, layout.width / 110));
  c.font = `11px ${palette.font}`;
  c.textBaseline = "middle";
  c.lineWidth = 1;
  for (const t of at) {
    const x = Math.round(layout.left + place(t, range, layout.width)) + 0.5;
    c.strokeStyle = palette.line;
    c.beginPath();
    c.moveTo(x, layout.axis - 5);
    c.lineTo(x, layout.height);
    c.stroke();
    const text = tickLabel(t, step);
    const half = c.measureText(text).width / 2;
    c.fillStyle = palette.muted;
    c.textAlign = "center";
    const most = layout.left + layout.width - half - 2;
    c.fillText(text, Math.min(most, Math.max(layout.left + half, x)), 10);
  }
}

function paintGraph(c: CanvasRenderingContext2D, p: Picture): void {
  const { layout, palette, online } = p;
  const { y, height } = layout.graph;
  const at = paintCounts(c, p, layout.graph, p.window, online, palette.text);
  if (at !== null) {
    c.font = `11px ${palette.font}`;
    c.textBaseline = "alphabetic";
    tag(c, palette, `${online} schedulers`, layout.width - 6, at < y + 16 ? at + 13 : at - 4);
  }
  c.strokeStyle = palette.line;
  c.strokeRect(0.5, y + 0.5, layout.width - 1, height - 1);
}

/** How many processes run and could run, below the number of schedulers as a line; gives where that is. */
function paintCounts(
  c: CanvasRenderingContext2D,
  p: Picture,
  box: { y: number; height: number },
  counts: Pick<Window, "running" | "runnable"> | null,
  online: number | null,
  line: string,
): number | null {
  const { layout, palette } = p;
  c.fillStyle = palette.bg;
  c.globalAlpha = 0.5;
  c.fillRect(0, box.y, layout.width, box.height);
  c.globalAlpha = 1;
  if (counts === null) return null;
  const top = graphTop(counts.running, counts.runnable, online);
  const { running, runnable } = colors(palette);
  const sums = counts.running.map((n, i) => n + (counts.runnable[i] ?? 0));
  area(c, p, box, sums, top, runnable, 0.55);
  area(c, p, box, counts.running, top, running, 1);
  if (online === null) return null;
  const at = Math.round(box.y + box.height - (online / top) * box.height) + 0.5;
  c.strokeStyle = line;
  c.lineWidth = 1;
  c.setLineDash([5, 4]);
  c.beginPath();
  c.moveTo(0, at);
  c.lineTo(layout.width, at);
  c.stroke();
  c.setLineDash([]);
  return at;
}

/** Words on a picture, readable on whatever is below. */
function tag(
  c: CanvasRenderingContext2D,
  palette: Palette,
  text: string,
  x: number,
  y: number,
): void {
  c.textAlign = "right";
  const { width } = c.measureText(text);
  c.globalAlpha = 0.8;
  c.fillStyle = palette.surface;
  c.fillRect(x - width - 3, y - 10, width + 6, 14);
  c.globalAlpha = 1;
  c.fillStyle = palette.text;
  c.fillText(text, x, y);
}

function area(
  c: CanvasRenderingContext2D,
  { layout, range, window: w }: Picture,
  { y, height }: { y: number; height: number },
  values: readonly number[],
  top: number,
  color: string,
  alpha: number,
): void {
  if (w === null) return;
  const bottom = y + height;
  c.fillStyle = color;
  c.globalAlpha = alpha;
  c.beginPath();
  c.moveTo(place(w.from, range, layout.width), bottom);
  values.forEach((n, i) => {
    const at = bottom - (n / top) * height;
    c.lineTo(place(w.from + i * w.width, range, layout.width), at);
    c.lineTo(place(w.from + (i + 1) * w.width, range, layout.width), at);
  });
  c.lineTo(place(w.from + values.length * w.width, range, layout.width), bottom);
  c.fill();
  c.globalAlpha = 1;
}

function paintRow(c: CanvasRenderingContext2D, p: Picture, row: Row): void {
  const { layout, palette, window: w } = p;
  if (row.kind === "path" || row.kind === "groups") return;
  if (row.kind === "process" && (row.id === p.marked || row === p.row)) {
    c.fillStyle = palette.accent;
    c.globalAlpha = row.id === p.marked ? 0.16 : 0.08;
    c.fillRect(0, row.y - 1, layout.width, row.height + 2);
    c.globalAlpha = 1;
  }
  if (row.kind === "node") {
    const counts = w?.nodes.find(({ node }) => node === row.id) ?? null;
    const node = p.nodes.find(({ number }) => number === row.id);
    paintCounts(c, p, row, counts, node?.online ?? null, palette.muted);
    return;
  }
  if (w === null) return;
  if (row.kind === "scheduler") {
    const one = w.schedulers.find(({ scheduler }) => scheduler === row.id);
    if (one !== undefined) paintAwake(c, p, row, one.awake);
    return;
  }
  const lane = w.lanes.find(({ process }) => process === row.id);
  if (lane === undefined) return;
  if (lane.intervals !== null) paintIntervals(c, p, row, lane);
  else paintShares(c, p, row, lane);
}

function paintAwake(
  c: CanvasRenderingContext2D,
  { layout, palette, range, window: w }: Picture,
  row: Row,
  awake: readonly number[],
): void {
  if (w === null) return;
  c.fillStyle = palette.muted;
  each(w, range, layout.width, (i, x, width) => {
    const share = Math.min(1, (awake[i] ?? 0) / 1000);
    if (share > 0) c.fillRect(x, row.y + row.height * (1 - share), width, row.height * share);
  });
}

/** Calls with each column in sight. */
function each(
  w: Window,
  range: Range,
  width: number,
  draw: (column: number, x: number, width: number) => void,
): void {
  const first = Math.max(0, Math.floor((range.from - w.from) / w.width));
  const last = Math.min(w.columns - 1, Math.ceil((range.to - w.from) / w.width));
  for (let i = first; i <= last; i += 1) {
    // Whole pixels leave no seams between columns.
    const x = Math.round(place(w.from + i * w.width, range, width));
    draw(i, x, Math.max(1, Math.round(place(w.from + (i + 1) * w.width, range, width)) - x));
  }
}

function paintShares(c: CanvasRenderingContext2D, p: Picture, row: Row, lane: Lane): void {
  const { layout, palette, range, window: w } = p;
  if (w === null) return;
  const color = colors(palette);
  const bottom = row.y + row.height;
  const draw = ({ up, more, gc, line }: Heights, x: number, width: number) => {
    const rect = (fill: string, top: number, height: number) => {
      if (height <= 0) return;
      c.fillStyle = fill;
      c.fillRect(x, top, width, height);
    };
    rect(color.waiting, bottom - 2, line ? 2 : 0);
    rect(color.running, bottom - up, up);
    rect(color.runnable, bottom - up - more, more);
    rect(color.gc, bottom - gc, gc);
  };
  // Neighbours that look alike are one.
  let begun: { heights: Heights; x: number } | null = null;
  let end = 0;
  each(w, range, layout.width, (i, x, width) => {
    const heights = heightsOf(stack(lane, i), row.height);
    if (begun === null || !alike(begun.heights, heights)) {
      if (begun !== null) draw(begun.heights, begun.x, end - begun.x);
      begun = { heights, x };
    }
    end = x + width;
  });
  const last = begun as { heights: Heights; x: number } | null;
  if (last !== null) draw(last.heights, last.x, end - last.x);
}

const alike = (a: Heights, b: Heights) =>
  a.up === b.up && a.more === b.more && a.gc === b.gc && a.line === b.line;

function paintIntervals(c: CanvasRenderingContext2D, p: Picture, row: Row, lane: Lane): void {
  const { layout, palette, range } = p;
  const color = colors(palette);
  const fills = [color.running, color.runnable, color.waiting, color.gc, color.exiting];
  const bottom = row.y + row.height;
  // Of the height; what is waited for is a line.
  const heights = [1, 0.6, 0.12, 0.4, 0.5];
  const all = (lane.intervals ?? []).filter(([what]) => what !== 3);
  const gcs = (lane.intervals ?? []).filter(([what]) => what === 3);
  const pixel = span(range) / layout.width;
  for (const list of [all, gcs])
    for (const [what, from, ns] of visibleIntervals(list, pixel, range.from, range.to)) {
      const x = place(from, range, layout.width);
      const width = Math.max(0.8, place(from + ns, range, layout.width) - x);
      const height = Math.max(2, (heights[what] ?? 1) * row.height);
      c.fillStyle = fills[what] ?? color.waiting;
      c.fillRect(x, bottom - height, width, height);
    }
}

function paintPointer(c: CanvasRenderingContext2D, { layout, palette, x, brush }: Picture): void {
  if (brush !== null) {
    const [a, b] = [Math.min(...brush), Math.max(...brush)];
    c.fillStyle = palette.accent;
    c.globalAlpha = 0.18;
    c.fillRect(a, layout.axis, b - a, layout.height - layout.axis);
    c.globalAlpha = 1;
  }
  if (x === null) return;
  c.strokeStyle = palette.muted;
  c.lineWidth = 1;
  c.beginPath();
  c.moveTo(Math.round(x) + 0.5, layout.axis);
  c.lineTo(Math.round(x) + 0.5, layout.height);
  c.stroke();
}

function paintLabels(c: CanvasRenderingContext2D, p: Picture): void {
  const { layout, palette, window: w } = p;
  c.textAlign = "right";
  c.textBaseline = "middle";
  const right = layout.left - 8;
  c.font = `11px ${palette.font}`;
  c.fillStyle = palette.muted;
  if (w !== null) {
    const top = graphTop(w.running, w.runnable, p.online);
    c.fillText(String(Number(top.toPrecision(3))), right, layout.graph.y + 7);
    c.fillText("0", right, layout.graph.y + layout.graph.height - 6);
  }
  c.fillText("processes", right, layout.graph.y + layout.graph.height / 2);
  for (const row of layout.rows) {
    const strong =
      row.kind === "node" || (row.kind === "process" && (row.id === p.marked || row === p.row));
    const size = row.kind === "process" || row.kind === "node" ? 12 : 10.5;
    c.font = `${strong ? 650 : 450} ${size}px ${palette.font}`;
    c.fillStyle = strong ? palette.text : palette.muted;
    c.fillText(fitted(c, visible(row.label), right - 6), right, row.y + row.height / 2 + 0.5);
  }
}

function fitted(c: CanvasRenderingContext2D, text: string, room: number): string {
  if (c.measureText(text).width <= room) return text;
  let short = text;
  while (short.length > 3 && c.measureText(`${short}…`).width > room) short = short.slice(0, -1);
  return `${short}…`;
}
