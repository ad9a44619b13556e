// SPDX-License-Identifier: Apache-2.0
// Text on the map: it stands upright in one size, whatever the zoom, so it is drawn in pixels of the screen.
import { groupIdentity } from "../../model/identity";
import type { Disc, Entity } from "../../model/scene";
import type { Palette } from "../../ui/theme";
import { visible } from "../../lib/visible";
import { isLit, nodeRadius, type Picture } from "./picture";

type Rect = [number, number, number, number];

export function paintLabels(c: CanvasRenderingContext2D, p: Picture): void {
  const taken: Rect[] = [];
  const { palette } = p;
  c.textBaseline = "alphabetic";
  c.textAlign = "center";
  const isFree = (rect: Rect) => !taken.some((other) => overlap(rect, other));
  const free = (rect: Rect) => {
    if (rect[0] > p.width || rect[0] + rect[2] < 0 || rect[1] > p.height || rect[1] + rect[3] < 0)
      return false;
    if (!isFree(rect)) return false;
    taken.push(rect);
    return true;
  };
  const order = p.discs.items
    .map((_, i) => i)
    .sort((a, b) => p.discs.items[b].disc.r - p.discs.items[a].disc.r);
  for (const i of order) {
    const { disc } = p.discs.items[i];
    const x = p.discs.x(i) * p.k + p.tx;
    const y = p.discs.y(i) * p.k + p.ty;
    const r = disc.r * p.k;
    if (x < -r - 200 || x > p.width + r + 200 || y < -r || y > p.height + r + 40) continue;
    c.globalAlpha = p.discs.size(i) * (isLit(p, disc) ? 1 : 0.4);
    if (!disc.expanded && disc.own.length > 0) bubbleText(c, p, disc, x, y, r);
    const top = y - r - 7;
    // To measure a text takes long, and of a thousand groups most have no room for any.
    if (!isFree([x - 4, top - 12, 8, 15])) continue;
    c.font = `600 12.5px ${palette.font}`;
    const text = clip(c, visible(disc.name), Math.max(96, 2.2 * r));
    const width = widthOf(c, text);
    if (!free([x - width / 2 - 2, top - 12, width + 4, 15])) continue;
    outlined(c, palette, text, x, top, groupIdentity(disc.id, palette.dark).color);
  }
  c.globalAlpha = 1;
  nodeLabels(c, p, free);
}

function bubbleText(
  c: CanvasRenderingContext2D,
  p: Picture,
  disc: Disc,
  x: number,
  y: number,
  r: number,
): void {
  if (r < 13) return;
  const { palette } = p;
  const lines = r > 34 ? 2 : 1;
  c.font = `650 ${Math.min(22, Math.max(12, r * 0.42))}px ${palette.font}`;
  c.fillStyle = palette.text;
  c.fillText(String(disc.own.length), x, y + (lines === 2 ? -1 : 5));
  if (lines === 2) {
    c.font = `11px ${palette.font}`;
    c.fillStyle = palette.muted;
    c.fillText(disc.own.length === 1 ? "node" : "nodes", x, y + 12);
    if (r > 42) c.fillText(p.inside(disc.id), x, y + 26);
  }
  const down = disc.own.filter((node) => node.status !== "up").length;
  if (down > 0) {
    c.font = `650 11px ${palette.font}`;
    outlined(c, palette, `${down} not up`, x, y + r - 6, palette.critical);
  }
}

function nodeLabels(c: CanvasRenderingContext2D, p: Picture, free: (rect: Rect) => boolean): void {
  const { palette } = p;
  const nodes = p.entities.items
    .map((item, i) => ({ ...item, i }))
    .filter(({ entity }) => entity.kind === "node");
  // Nodes that are looked at come first, then gateways: they are few and matter.
  const rank = ({ i, entity }: { i: number; entity: Entity }) =>
    i === p.focus || i === p.ring ? 0 : entity.groups.length > 1 ? 1 : 2;
  nodes.sort((a, b) => rank(a) - rank(b));
  const roomy = p.k * 34 > 42 || (nodes.length <= 24 && p.k > 0.8);
  for (const { entity, i } of nodes) {
    const wanted = rank({ i, entity });
    if (wanted > 0 && !(roomy || (wanted === 1 && p.k * 34 > 30))) continue;
    c.font = `${wanted === 0 ? 600 : 400} 11px ${palette.font}`;
    const text = p.labelOf(entity);
    const width = widthOf(c, text);
    const x = p.entities.x(i) * p.k + p.tx;
    const y = p.entities.y(i) * p.k + p.ty + nodeRadius(entity.r, p.k) * p.k + 12;
    if (!free([x - width / 2 - 1, y - 9, width + 2, 12])) continue;
    c.globalAlpha = p.entities.size(i) * (p.lit !== null && p.lit[i] === 0 ? 0.3 : 1);
    outlined(c, palette, text, x, y, wanted === 0 ? palette.text : palette.muted);
  }
  c.globalAlpha = 1;
}

function outlined(
  c: CanvasRenderingContext2D,
  palette: Palette,
  text: string,
  x: number,
  y: number,
  fill: string,
): void {
  c.strokeStyle = palette.bg;
  c.lineWidth = 3.5;
  c.strokeText(text, x, y);
  c.fillStyle = fill;
  c.fillText(text, x, y);
}

const widths = new Map<string, Map<string, number>>();
/** Of so many texts in one font, as many as are seen at once and more. */
const MOST_WIDTHS = 4000;

/** Measured once for each font: that takes longer than to write the text. */
function widthOf(c: CanvasRenderingContext2D, text: string): number {
  const { font } = c;
  let known = widths.get(font);
  if (known === undefined) widths.set(font, (known = new Map<string, number>()));
  let width = known.get(text);
  if (width === undefined) {
    if (known.size >= MOST_WIDTHS) known.clear();
    known.set(text, (width = c.measureText(text).width));
  }
  return width;
}

function clip(c: CanvasRenderingContext2D, text: string, width: number): string {
  if (widthOf(c, text) <= width) return text;
  let cut = text.length - 1;
  while (cut > 3 && widthOf(c, `${text.slice(0, cut)}…`) > width) cut--;
  return `${text.slice(0, cut)}…`;
}

function overlap(a: Rect, b: Rect): boolean {
  return a[0] < b[0] + b[2] && b[0] < a[0] + a[2] && a[1] < b[1] + b[3] && b[1] < a[1] + a[3];
}
