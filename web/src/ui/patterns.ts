// SPDX-License-Identifier: Apache-2.0
// A group's pattern for canvases and as a swatch, so that colour is never the only sign.
import { s } from "../lib/dom";
import { groupIdentity, type Identity, type Pattern } from "../model/identity";

const TILE = 12;
const cache = new Map<string, CanvasPattern | null>();

/** A tile in that colour and alpha; null for the plain one. */
export function canvasPattern(
  context: CanvasRenderingContext2D,
  identity: Identity,
  alpha: number,
): CanvasPattern | null {
  if (identity.pattern === "plain") return null;
  const key = `${identity.color}/${identity.pattern}/${alpha}`;
  let pattern = cache.get(key);
  if (pattern === undefined) {
    const tile = document.createElement("canvas");
    tile.width = tile.height = TILE * 2;
    const c = tile.getContext("2d") as CanvasRenderingContext2D;
    c.scale(2, 2);
    c.strokeStyle = c.fillStyle = identity.color;
    c.globalAlpha = alpha;
    c.lineWidth = 1.6;
    drawTile(c, identity.pattern);
    pattern = context.createPattern(tile, "repeat");
    pattern?.setTransform(new DOMMatrix().scale(0.5));
    cache.set(key, pattern);
  }
  return pattern;
}

function drawTile(c: CanvasRenderingContext2D, pattern: Pattern): void {
  c.beginPath();
  if (pattern === "dots") {
    for (const [x, y] of [
      [3, 3],
      [9, 9],
    ]) {
      c.moveTo(x + 1.5, y);
      c.arc(x, y, 1.5, 0, 7);
    }
    c.fill();
    return;
  }
  const line = (x0: number, y0: number, x1: number, y1: number) => {
    c.moveTo(x0, y0);
    c.lineTo(x1, y1);
  };
  for (const shift of [-TILE, 0, TILE]) {
    line(shift - 2, TILE + 2, shift + TILE + 2, -2);
    if (pattern === "cross") line(shift - 2, -2, shift + TILE + 2, TILE + 2);
  }
  c.stroke();
}

/** The pattern of a group on something as small as a node. */
export function mark(
  c: CanvasRenderingContext2D,
  identity: Identity,
  [x, y]: [number, number],
  d: number,
  ground: string,
): void {
  if (identity.pattern === "plain") return;
  c.strokeStyle = c.fillStyle = ground;
  c.lineWidth = d * 0.5;
  c.beginPath();
  if (identity.pattern === "dots") {
    c.arc(x, y, d * 0.62, 0, 2 * Math.PI);
    c.fill();
    return;
  }
  c.moveTo(x - d, y + d);
  c.lineTo(x + d, y - d);
  if (identity.pattern === "cross") {
    c.moveTo(x - d, y - d);
    c.lineTo(x + d, y + d);
  }
  c.stroke();
}

/** A small sign of a group or a node beside its name, for lists of both. */
export const sign = (kind: "group" | "node", id: number, dark: boolean): SVGSVGElement =>
  kind === "group"
    ? swatch(id, dark)
    : s(
        "svg",
        { viewBox: "0 0 14 14", class: "swatch", "aria-hidden": "true" },
        s("circle", {
          cx: 7,
          cy: 7,
          r: 4,
          fill: "none",
          stroke: "currentColor",
          "stroke-width": 1.6,
        }),
      );

/** A small sign of a group beside its name. */
export function swatch(groupId: number, dark: boolean): SVGSVGElement {
  const { color, pattern } = groupIdentity(groupId, dark);
  const marks: Record<Pattern, string> = {
    plain: "",
    stripes: "M1 9 9 1M5 13 13 5",
    dots: "M4.2 5h.1M9.8 5h.1M7 9.6h.1",
    cross: "M2.5 2.5l9 9M11.5 2.5l-9 9",
  };
  return s(
    "svg",
    { viewBox: "0 0 14 14", class: "swatch", "aria-hidden": "true" },
    s("circle", { cx: 7, cy: 7, r: 6.5, fill: color }),
    s("path", {
      d: marks[pattern],
      stroke: dark ? "#10141a" : "#ffffff",
      "stroke-width": pattern === "dots" ? 2.4 : 1.7,
      "stroke-linecap": "round",
      fill: "none",
    }),
  );
}
