// SPDX-License-Identifier: Apache-2.0
// What is drawn over the lanes: the critical path, and messages as arrows.
import type { Palette } from "../../../ui/theme";
import type { Arrow, Node, Segment } from "../answers";
import type { Layout, Row } from "./lanes";
import { nodeOf } from "../nodes-model";
import { joined } from "./path-model";
import { place, type Range, span } from "../range";

export interface Overlay {
  palette: Palette;
  layout: Layout;
  range: Range;
  path: readonly Segment[];
  arrows: readonly Arrow[];
  nodes: readonly Node[];
  marked: number | null;
}

/** More lines between lanes than these would be a grey area. */
const MOST_LINKS = 400;

/** The same colours as on the lanes. */
export const stepColors = (p: Palette): Record<Segment["kind"], string> => ({
  running: p.ok,
  runnable: p.warning,
  waiting: p.faint,
  message: p.accent,
  between: p.critical,
});

const lanesOf = (layout: Layout): Map<number, Row> =>
  new Map(layout.rows.filter(({ kind }) => kind === "process").map((row) => [row.id, row]));

/** The path has a row of its own, where its colours tell what it does, and a bar on the lane where it is. */
export function paintPath(c: CanvasRenderingContext2D, o: Overlay): void {
  const { layout, range, palette } = o;
  const own = layout.rows.find(({ kind }) => kind === "path");
  if (own === undefined) return;
  const colors = stepColors(palette);
  const pixel = span(range) / layout.width;
  const shown = o.path.filter(({ from, to }) => to >= range.from && from <= range.to);
  for (const [kind, from, to] of joined(shown, pixel)) {
    const x = place(from, range, layout.width);
    const height = kind === "waiting" ? 3 : own.height;
    c.fillStyle = colors[kind];
    c.fillRect(
      x,
      own.y + own.height - height,
      Math.max(0.8, place(to, range, layout.width) - x),
      height,
    );
  }
  const lanes = lanesOf(layout);
  c.fillStyle = palette.text;
  for (const { number, from, to } of shown) {
    const row = lanes.get(number);
    if (row === undefined) continue;
    const x = place(from, range, layout.width);
    c.fillRect(x, row.y - 1, Math.max(1, place(to, range, layout.width) - x), 3);
  }
  if (shown.length <= MOST_LINKS) paintLinks(c, o, shown, lanes);
}

/** Where the path goes from one lane to another. */
function paintLinks(
  c: CanvasRenderingContext2D,
  { layout, range, palette }: Overlay,
  shown: readonly Segment[],
  lanes: ReadonlyMap<number, Row>,
): void {
  c.strokeStyle = palette.text;
  c.lineWidth = 1;
  c.beginPath();
  shown.forEach((one, i) => {
    const next = shown[i + 1];
    const [a, b] = [lanes.get(one.number), lanes.get(next?.number ?? 0)];
    // Steps between these two may not be among the longest.
    if (next === undefined || next.from !== one.to || a === undefined || b === undefined) return;
    if (a === b) return;
    const x = Math.round(place(one.to, range, layout.width)) + 0.5;
    c.moveTo(x, a.y);
    c.lineTo(x, b.y);
  });
  c.stroke();
}

/** From the middle of a lane to that of another, when it was sent to when it was taken over; thicker between nodes. */
export function paintArrows(c: CanvasRenderingContext2D, o: Overlay): void {
  const { layout, range, palette, marked } = o;
  const lanes = lanesOf(layout);
  const isBetween = (from: number, to: number) => nodeOf(from, o.nodes) !== nodeOf(to, o.nodes);
  for (const [outgoing, between] of [
    [false, false],
    [true, false],
    [false, true],
    [true, true],
  ]) {
    c.strokeStyle = outgoing ? palette.accent : palette.text;
    c.fillStyle = c.strokeStyle;
    c.lineWidth = between ? 1.75 : 1;
    c.globalAlpha = 0.75;
    c.beginPath();
    for (const [sent, received, from, to] of o.arrows) {
      const [a, b] = [lanes.get(from), lanes.get(to)];
      if (a === undefined || b === undefined || a === b || (from === marked) !== outgoing) continue;
      if (isBetween(from, to) !== between) continue;
      const x1 = place(sent, range, layout.width);
      const x2 = place(received ?? sent, range, layout.width);
      const down = b.y > a.y;
      const y1 = a.y + a.height / 2;
      const y2 = down ? b.y + 2 : b.y + b.height - 2;
      c.moveTo(x1, y1);
      c.lineTo(x2, y2);
      // The head points along the line.
      const length = Math.hypot(x2 - x1, y2 - y1) || 1;
      const [dx, dy] = [(x2 - x1) / length, (y2 - y1) / length];
      for (const side of [-1, 1]) {
        c.moveTo(x2, y2);
        c.lineTo(x2 - 6 * dx - side * 3 * dy, y2 - 6 * dy + side * 3 * dx);
      }
    }
    c.stroke();
  }
  c.lineWidth = 1;
  c.globalAlpha = 1;
}
