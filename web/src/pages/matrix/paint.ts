// SPDX-License-Identifier: Apache-2.0
// The matrix on its canvas: labels, cells, numbers where they fit.
import type { Palette } from "../../ui/theme";
import { bytes, number } from "../../lib/format";
import type { Label, Matrix } from "../../model/matrix";
import { color, type Measure, position, type Scale } from "../../model/traffic-scale";
import { groupIdentity } from "../../model/identity";
import { mark } from "../../ui/patterns";

export interface Grid {
  left: number;
  top: number;
  cellWidth: number;
  cellHeight: number;
  width: number;
  height: number;
  slant: number;
}

const LABEL_FONT = "12px";
/** Column labels lean; over narrow columns they stand upright. */
const NARROW = 22;
/** On a phone a few columns are as wide as their numbers, and the matrix scrolls. */
const PHONE = 640;
const FEW = 24;
const READABLE = 40;

/** Cells as large as there is room, within bounds; larger than the room it scrolls. */
export function gridFor(
  matrix: Matrix,
  width: number,
  height: number,
  textWidth: (text: string) => number,
  label: (one: Label) => string,
): Grid {
  const longest = (labels: readonly Label[]) =>
    Math.min(130, Math.max(30, ...labels.map((one) => textWidth(label(one)))));
  const left = longest(matrix.rows) + 34;
  const columns = Math.max(1, matrix.columns.length);
  const slant =
    (width - left - 60) / columns < (width < PHONE ? READABLE : NARROW) ? Math.PI / 2 : Math.PI / 4;
  const top = longest(matrix.columns) * Math.sin(slant) + 26;
  // The last column's label leans out to the right.
  const lean = longest(matrix.columns) * Math.cos(slant) * 0.8;
  const least = width < PHONE && columns <= FEW ? READABLE : 13;
  const room = Math.floor((width - left - lean - 12) / columns);
  const cellWidth = Math.min(128, Math.max(least, room));
  const cellHeight = Math.min(
    64,
    Math.max(13, Math.floor((height - top - 16) / Math.max(1, matrix.rows.length))),
  );
  return {
    left,
    top,
    cellWidth,
    cellHeight,
    width: left + cellWidth * matrix.columns.length + lean + 12,
    height: top + cellHeight * matrix.rows.length + 12,
    slant,
  };
}

export interface MatrixPicture {
  matrix: Matrix;
  grid: Grid;
  palette: Palette;
  measure: Measure;
  scale: Scale;
  ratio: number;
  /** Row and column pointed at, or null. */
  at: [number, number] | null;
  /** The cell has the keyboard's focus. */
  ring: boolean;
  label: (one: Label) => string;
}

export function paintMatrix(c: CanvasRenderingContext2D, p: MatrixPicture): void {
  const { matrix, grid } = p;
  c.setTransform(p.ratio, 0, 0, p.ratio, 0, 0);
  c.clearRect(0, 0, grid.width, grid.height);
  paintCells(c, p);
  paintLabels(c, p);
  if (p.at === null) return;
  const [row, column] = p.at;
  if (row >= matrix.rows.length || column >= matrix.columns.length) return;
  c.strokeStyle = p.palette.accent;
  c.lineWidth = p.ring ? 2.5 : 1.5;
  c.strokeRect(
    grid.left + column * grid.cellWidth,
    grid.top + row * grid.cellHeight,
    grid.cellWidth - 1,
    grid.cellHeight - 1,
  );
}

function paintCells(
  c: CanvasRenderingContext2D,
  { matrix, grid, palette, measure, scale, at }: MatrixPicture,
): void {
  const rates = measure === "msgs" ? matrix.msgs : matrix.bytes;
  const format = measure === "msgs" ? number : bytes;
  const { cellWidth: w, cellHeight: hgt } = grid;
  const texts = w >= 42 && hgt >= 17;
  c.textAlign = "center";
  c.textBaseline = "middle";
  c.font = `${w >= 90 && hgt >= 30 ? 13.5 : w >= 54 ? 11.5 : 10.5}px ${palette.font}`;
  matrix.rows.forEach((from, row) => {
    matrix.columns.forEach((to, column) => {
      const i = row * matrix.columns.length + column;
      const x = grid.left + column * w;
      const y = grid.top + row * hgt;
      const rate = rates[i];
      const place = position(rate, scale);
      const own = matrix.kind === "groups" ? from.id === to.id : false;
      const cross = at !== null && (at[0] === row || at[1] === column);
      c.fillStyle = rate > 0 ? color(place, palette.dark) : cross ? palette.line : palette.surface;
      c.globalAlpha = rate > 0 ? 0.92 : 1;
      c.fillRect(x, y, w - 1, hgt - 1);
      c.globalAlpha = 1;
      if (own) {
        c.strokeStyle = palette.muted;
        c.lineWidth = 1;
        c.strokeRect(x + 0.5, y + 0.5, w - 2, hgt - 2);
      }
      const dark = rate > 0 && (palette.dark ? place < 0.55 : place > 0.52);
      const ink = rate === 0 ? palette.faint : dark ? "#ffffff" : "#171b21";
      if (matrix.direct[i] === 1) {
        // A notched corner: past the gateways.
        c.fillStyle = ink;
        c.beginPath();
        c.moveTo(x + w - 1, y);
        c.lineTo(x + w - 1, y + 7);
        c.lineTo(x + w - 8, y);
        c.fill();
      }
      if (texts && rate > 0) {
        const text = format(rate);
        // Half a number would be another one.
        if (c.measureText(text).width > w - 4) return;
        c.fillStyle = ink;
        c.fillText(text, x + w / 2, y + hgt / 2 + 0.5);
      }
    });
  });
}

function paintLabels(c: CanvasRenderingContext2D, p: MatrixPicture): void {
  const { matrix, grid, palette } = p;
  const { cellWidth: w, cellHeight: hgt } = grid;
  c.textBaseline = "middle";
  const name = (one: Label, strong: boolean, room: number) => {
    c.font = `${strong ? 650 : 450} ${LABEL_FONT} ${palette.font}`;
    c.fillStyle = strong ? palette.text : palette.muted;
    let text = p.label(one);
    while (text.length > 4 && c.measureText(text).width > room) text = `${text.slice(0, -2)}…`;
    return text;
  };
  matrix.rows.forEach((one, row) => {
    const y = grid.top + row * hgt + hgt / 2;
    c.textAlign = "right";
    const text = name(one, p.at?.[0] === row, 130);
    c.fillText(text, grid.left - 20, y);
    dot(c, p, one, grid.left - 10, y);
  });
  matrix.columns.forEach((one, column) => {
    const x = grid.left + column * w + w / 2;
    dot(c, p, one, x, grid.top - 8);
    c.save();
    c.translate(grid.slant > 1 ? x : x + 2, grid.top - 16);
    c.rotate(-grid.slant);
    c.textAlign = "left";
    c.fillText(name(one, p.at?.[1] === column, 130), 0, 0);
    c.restore();
  });
}

function dot(
  c: CanvasRenderingContext2D,
  p: MatrixPicture,
  one: Label,
  x: number,
  y: number,
): void {
  if (p.matrix.kind !== "groups") return;
  const identity = groupIdentity(one.id, p.palette.dark);
  c.fillStyle = identity.color;
  c.beginPath();
  c.arc(x, y, 4.5, 0, 2 * Math.PI);
  c.fill();
  mark(c, identity, [x, y], 2.4, p.palette.bg);
}
