// SPDX-License-Identifier: Apache-2.0
// Puts the picture on the canvas. Knows nothing of time or input.
import { arrow, curve, type Curve } from "../../model/curve";
import { FREE } from "../../model/flows";
import type { Disc, Entity } from "../../model/scene";
import { groupIdentity, type Identity } from "../../model/identity";
import { canvasPattern, mark } from "../../ui/patterns";
import { color as trafficColor, widthAt } from "../../model/traffic-scale";
import { paintLabels } from "./labels";
import { isLit, nodeRadius, type Picture } from "./picture";

const LEVELS = 24;
const ARROWS_UP_TO = 260;
/** Of more groups in sight only those that are looked for or looked at show how far they reach. */
const AREAS_UP_TO = 300;
const SECTORS_UP_TO = 12;
const DIM = 0.13;

export function paint(c: CanvasRenderingContext2D, p: Picture): void {
  c.setTransform(p.ratio, 0, 0, p.ratio, 0, 0);
  c.clearRect(0, 0, p.width, p.height);
  c.setTransform(p.ratio * p.k, 0, 0, p.ratio * p.k, p.ratio * p.tx, p.ratio * p.ty);
  c.lineCap = "round";
  c.lineJoin = "round";
  paintAreas(c, p);
  paintEdges(c, p);
  paintBubbles(c, p);
  paintEntities(c, p);
  c.setTransform(p.ratio, 0, 0, p.ratio, 0, 0);
  paintLabels(c, p);
}

/** Where a group reaches: its disc, with an arm to each of its gateways. Edges lie over it. */
function paintAreas(c: CanvasRenderingContext2D, p: Picture): void {
  const dark = p.palette.dark;
  const place = new Map<string, number>();
  p.entities.items.forEach((item, i) => place.set(item.key, i));
  const all = p.discs.items.length <= AREAS_UP_TO || inSight(p, place) <= AREAS_UP_TO;
  p.discs.each(({ disc }, i) => {
    if (!all && !p.isNamed(disc) && !(p.lit !== null && isLit(p, disc))) return;
    const identity = groupIdentity(disc.id, dark);
    const size = p.discs.size(i);
    const open = p.discs.extra(i);
    const x = p.discs.x(i);
    const y = p.discs.y(i);
    const r = disc.r * (0.6 + 0.4 * size);
    c.beginPath();
    c.moveTo(x + r, y);
    c.arc(x, y, r, 0, 2 * Math.PI);
    for (const gateway of disc.gateways) {
      const g = place.get(`n:${gateway.name}`);
      if (g !== undefined) arm(c, x, y, r, p.entities.x(g), p.entities.y(g), 17);
    }
    tint(c, identity, size * (isLit(p, disc) ? 1 : 0.35), dark ? 0.13 : 0.1, 0.11);
    if (open > 0.5) rim(c, p, disc, identity, x, y, r, size * 0.55);
  });
  c.globalAlpha = 1;
}

/** How many groups reach into what is seen. */
function inSight(p: Picture, place: ReadonlyMap<string, number>): number {
  const [left, top] = [-p.tx / p.k, -p.ty / p.k];
  const [right, bottom] = [left + p.width / p.k, top + p.height / p.k];
  const isIn = (x: number, y: number, r: number) =>
    x + r > left && x - r < right && y + r > top && y - r < bottom;
  let count = 0;
  p.discs.each(({ disc }, i) => {
    const reaches = ({ name }: { name: string }) => {
      const g = place.get(`n:${name}`);
      return g !== undefined && isIn(p.entities.x(g), p.entities.y(g), 0);
    };
    if (isIn(p.discs.x(i), p.discs.y(i), disc.r) || disc.gateways.some(reaches)) count++;
  });
  return count;
}

/** Groups that are not shown node by node lie over the edges, which pass behind them. */
function paintBubbles(c: CanvasRenderingContext2D, p: Picture): void {
  const dark = p.palette.dark;
  p.discs.each(({ disc }, i) => {
    const closed = 1 - p.discs.extra(i);
    const size = p.discs.size(i);
    if (closed < 0.02 || disc.own.length === 0) return;
    const identity = groupIdentity(disc.id, dark);
    const x = p.discs.x(i);
    const y = p.discs.y(i);
    const r = disc.r * (0.6 + 0.4 * size);
    const strength = size * closed * (isLit(p, disc) ? 1 : 0.4);
    c.beginPath();
    c.arc(x, y, r, 0, 2 * Math.PI);
    c.globalAlpha = size * closed;
    c.fillStyle = p.palette.bg;
    c.fill();
    tint(c, identity, strength, dark ? 0.22 : 0.17, 0.24);
    rim(c, p, disc, identity, x, y, r, strength);
  });
  c.globalAlpha = 1;
}

/** Fills the present path with a group's colour and pattern. */
function tint(
  c: CanvasRenderingContext2D,
  identity: Identity,
  strength: number,
  alpha: number,
  patternAlpha: number,
): void {
  c.fillStyle = identity.color;
  c.globalAlpha = strength * alpha;
  c.fill();
  const pattern = canvasPattern(c, identity, 1);
  if (pattern === null) return;
  c.fillStyle = pattern;
  c.globalAlpha = strength * patternAlpha;
  c.fill();
}

function rim(
  c: CanvasRenderingContext2D,
  p: Picture,
  disc: Disc,
  identity: Identity,
  x: number,
  y: number,
  r: number,
  alpha: number,
): void {
  c.beginPath();
  c.arc(x, y, r, 0, 2 * Math.PI);
  c.strokeStyle = identity.color;
  c.globalAlpha = alpha;
  c.lineWidth = (disc.expanded ? 1.25 : 1.75) / p.k;
  c.setLineDash(disc.id === FREE ? [4 / p.k, 4 / p.k] : []);
  c.stroke();
  c.setLineDash([]);
}

/** A tapered arm from a disc to a small circle, as part of the path (one direction of winding). */
function arm(
  c: CanvasRenderingContext2D,
  x: number,
  y: number,
  r: number,
  gx: number,
  gy: number,
  gr: number,
): void {
  const angle = Math.atan2(gy - y, gx - x);
  const broad = Math.min(r, 30);
  const side = angle + Math.PI / 2;
  const [sx, sy] = [Math.cos(side), Math.sin(side)];
  const back = Math.sqrt(Math.max(0, r * r - broad * broad));
  const [bx, by] = [x + Math.cos(angle) * back, y + Math.sin(angle) * back];
  c.moveTo(bx - sx * broad, by - sy * broad);
  c.lineTo(gx - sx * gr, gy - sy * gr);
  c.arc(gx, gy, gr, angle - Math.PI / 2, angle + Math.PI / 2);
  c.lineTo(bx + sx * broad, by + sy * broad);
  c.closePath();
}

/** Edges sorted into strokes of one colour and width: a few dozen strokes, however many edges. */
function paintEdges(c: CanvasRenderingContext2D, p: Picture): void {
  const { edges } = p;
  const buckets: number[][] = [];
  let visible = 0;
  for (let e = 0; e < edges.count; e++) {
    const shown = edges.shown[e];
    if (shown <= -0.15) continue;
    visible++;
    const level = Math.round(Math.max(0, shown) * (LEVELS - 1));
    const bright = isBright(p, edges.from[e], edges.to[e], e);
    const bucket = (bright ? 2 * LEVELS : 0) + (edges.direct[e] === 1 ? LEVELS : 0) + level;
    (buckets[bucket] ??= []).push(e);
  }
  const shape: Curve = { x0: 0, y0: 0, cx: 0, cy: 0, x1: 0, y1: 0 };
  const heads = visible <= ARROWS_UP_TO;
  buckets.forEach((members, bucket) => {
    const bright = bucket >= 2 * LEVELS;
    const direct = bucket % (2 * LEVELS) >= LEVELS;
    const at = (bucket % LEVELS) / (LEVELS - 1);
    const width = widthAt(at);
    c.strokeStyle = c.fillStyle = trafficColor(at, p.palette.dark);
    c.globalAlpha = bright ? 0.68 + 0.3 * at : DIM;
    c.lineWidth = width / p.k;
    c.setLineDash(direct ? [(3 + width) / p.k, (3 + 1.6 * width) / p.k] : []);
    c.beginPath();
    for (const e of members) {
      curveOf(p, e, shape);
      c.moveTo(shape.x0, shape.y0);
      c.quadraticCurveTo(shape.cx, shape.cy, shape.x1, shape.y1);
    }
    c.stroke();
    if (!bright || !(heads || p.focus >= 0)) return;
    c.beginPath();
    for (const e of members) {
      curveOf(p, e, shape);
      arrow(c, shape, (5 + width * 0.9) / p.k);
    }
    c.fill();
  });
  c.setLineDash([]);
  c.globalAlpha = 1;
  if (p.edgeFocus >= 0 && p.edgeFocus < edges.count) {
    curveOf(p, p.edgeFocus, shape);
    c.strokeStyle = p.palette.accent;
    c.lineWidth = 2.5 / p.k;
    c.beginPath();
    c.moveTo(shape.x0, shape.y0);
    c.quadraticCurveTo(shape.cx, shape.cy, shape.x1, shape.y1);
    c.stroke();
    c.fillStyle = p.palette.accent;
    c.beginPath();
    arrow(c, shape, 9 / p.k);
    c.fill();
  }
}

function isBright(p: Picture, from: number, to: number, e: number): boolean {
  if (p.edgeFocus >= 0) return e === p.edgeFocus;
  if (p.focus >= 0) return from === p.focus || to === p.focus;
  return p.lit === null || p.lit[from] === 1 || p.lit[to] === 1;
}

export function curveOf(
  p: Pick<Picture, "edges" | "entities" | "k">,
  e: number,
  into: Curve,
): void {
  const { entities, edges, k } = p;
  const a = edges.from[e];
  const b = edges.to[e];
  const rim = (i: number) => {
    const { entity } = entities.items[i];
    return entity.kind === "bubble" ? entity.r : nodeRadius(entity.r, k) + 1.5 / k;
  };
  curve(entities.x(a), entities.y(a), rim(a), entities.x(b), entities.y(b), rim(b), k, into);
}

function paintEntities(c: CanvasRenderingContext2D, p: Picture): void {
  const { palette, k } = p;
  const neighbours = p.focus >= 0 ? neighboursOf(p) : null;
  p.entities.each(({ entity }, i, ghost) => {
    const size = p.entities.size(i);
    if (size <= 0.01) return;
    const x = p.entities.x(i);
    const y = p.entities.y(i);
    const dimmed =
      !ghost && ((p.lit !== null && p.lit[i] === 0) || (neighbours !== null && !neighbours.has(i)));
    c.globalAlpha = size * (dimmed ? 0.28 : 1);
    if (entity.kind === "node")
      paintNode(c, p, entity, x, y, nodeRadius(entity.r, k) * (0.4 + 0.6 * size), k);
    if (i === p.ring || (!ghost && i === p.focus)) {
      const r = entity.kind === "bubble" ? entity.r + 3 / k : nodeRadius(entity.r, k) + 4 / k;
      c.globalAlpha = 1;
      c.strokeStyle = palette.accent;
      c.lineWidth = (i === p.ring ? 2.5 : 1.5) / k;
      c.beginPath();
      c.arc(x, y, r, 0, 2 * Math.PI);
      c.stroke();
    }
  });
  c.globalAlpha = 1;
}

function paintNode(
  c: CanvasRenderingContext2D,
  p: Picture,
  entity: Entity,
  x: number,
  y: number,
  r: number,
  k: number,
): void {
  const { palette } = p;
  const { dark } = palette;
  const status = entity.node?.status ?? "up";
  const alpha = c.globalAlpha;
  // A rim in the colour of the ground sets the node off from edges and neighbours.
  c.fillStyle = palette.bg;
  c.beginPath();
  c.arc(x, y, r + 1.5 / k, 0, 2 * Math.PI);
  c.fill();
  const parts = entity.groups;
  const step = (2 * Math.PI) / parts.length;
  if (status === "up" && parts.length > SECTORS_UP_TO) paintRays(c, parts, x, y, r, dark);
  else
    parts.forEach((group, i) => {
      const identity = groupIdentity(group, dark);
      const a0 = -Math.PI / 2 + i * step;
      c.beginPath();
      if (parts.length > 1) c.moveTo(x, y);
      c.arc(x, y, r, a0, a0 + step);
      c.closePath();
      if (status === "up") {
        c.fillStyle = identity.color;
        c.fill();
        if (r * k > 5)
          mark(
            c,
            identity,
            parts.length === 1
              ? [x, y]
              : [x + 0.56 * r * Math.cos(a0 + step / 2), y + 0.56 * r * Math.sin(a0 + step / 2)],
            r * (parts.length === 1 ? 0.42 : 0.24),
            palette.bg,
          );
      } else {
        c.strokeStyle = status === "down" ? palette.faint : palette.warning;
        c.lineWidth = 1.5 / k;
        c.setLineDash(status === "down" ? [] : [3 / k, 2.5 / k]);
        c.stroke();
        c.setLineDash([]);
      }
    });
  if (status === "down") {
    const d = r * 0.42;
    c.strokeStyle = palette.critical;
    c.lineWidth = 1.8 / k;
    c.beginPath();
    c.moveTo(x - d, y - d);
    c.lineTo(x + d, y + d);
    c.moveTo(x + d, y - d);
    c.lineTo(x - d, y + d);
    c.stroke();
  } else if (status === "unreachable") {
    c.fillStyle = palette.warning;
    c.font = `700 ${r * 1.3}px ${palette.font}`;
    c.textAlign = "center";
    c.textBaseline = "middle";
    c.fillText("?", x, y + r * 0.08);
  }
  const alert = p.alerts.get(entity.label);
  if (alert !== undefined && status === "up") {
    c.fillStyle = alert === "critical" ? palette.critical : palette.warning;
    c.strokeStyle = palette.bg;
    c.lineWidth = 1.5 / k;
    c.beginPath();
    c.arc(x + r * 0.8, y - r * 0.8, Math.max(3.5 / k, r * 0.36), 0, 2 * Math.PI);
    c.fill();
    c.stroke();
  }
  c.globalAlpha = alpha;
}

/** The sectors of a node in very many groups: no more paths than there are colours, and no patterns. */
function paintRays(
  c: CanvasRenderingContext2D,
  groups: readonly number[],
  x: number,
  y: number,
  r: number,
  dark: boolean,
): void {
  const step = (2 * Math.PI) / groups.length;
  const byColor = new Map<string, number[]>();
  groups.forEach((group, i) => {
    const { color } = groupIdentity(group, dark);
    const same = byColor.get(color);
    if (same === undefined) byColor.set(color, [i]);
    else same.push(i);
  });
  for (const [color, sectors] of byColor) {
    c.beginPath();
    for (const i of sectors) {
      const a0 = -Math.PI / 2 + i * step;
      c.moveTo(x, y);
      c.arc(x, y, r, a0, a0 + step);
      c.closePath();
    }
    c.fillStyle = color;
    c.fill();
  }
}

function neighboursOf(p: Picture): Set<number> {
  const near = new Set([p.focus]);
  for (let e = 0; e < p.edges.count; e++) {
    if (p.edges.shown[e] <= -0.15) continue;
    if (p.edges.from[e] === p.focus) near.add(p.edges.to[e]);
    if (p.edges.to[e] === p.focus) near.add(p.edges.from[e]);
  }
  return near;
}
