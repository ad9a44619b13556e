// SPDX-License-Identifier: Apache-2.0
// The graph of communication: where its ends lie, how thick its edges are, which names there is room for. Pure, and
// the same of the same answer.
import { forceLink, forceSimulation, forceX, forceY, type SimulationNodeDatum } from "d3-force";
import { bytes, count } from "../../../lib/format";
import { keepApart, pushApart } from "../../../model/forces";
import { position, relative, type Scale, widthAt } from "../../../model/traffic-scale";
import type { Amount, Asked, By, Communication, MessageEdge, End } from "../sums-answers";

export interface Size {
  width: number;
  height: number;
}

/** An end in the picture, in pixels. */
export interface Spot {
  key: string;
  x: number;
  y: number;
  r: number;
}

/** Where a name stands. */
export interface Label {
  key: string;
  text: string;
  x: number;
  y: number;
  anchor: "start" | "middle" | "end";
}

const LEAST_R = 6;
const MOST_R = 17;
/** The distance of two ends that exchange messages. */
const LENGTH = 74;
const PUSH = 34;
const PULL = 0.05;
const STEPS = 240;
const GOLDEN = Math.PI * (3 - Math.sqrt(5));
/** Room for names and loops at the rim. */
const MARGIN = { x: 54, y: 34 };
const STRETCH = 1.5;
const LETTER = 6.3;
const LINE = 13;
const LONGEST = 24;
/** Edges are nearer to each other than those of a cluster's groups. */
const THIN = 0.75;

/** Fewer ends need less height. */
export const heightOf = (ends: number): number => Math.min(420, 200 + 12 * ends);

interface Body extends SimulationNodeDatum {
  r: number;
}

const measureOf = (edge: Pick<MessageEdge, "count" | "bytes">, sort: Asked["sort"]): number =>
  sort === "count" ? edge.count : edge.bytes;

/** All that an end sends and receives. */
export const exchanged = (end: End, sort: Asked["sort"]): number =>
  sort === "count"
    ? end.sent + end.received + end.within
    : end.sent_bytes + end.received_bytes + end.within_bytes;

/** The scale of the edges that are shown: from the least to the most, in whole ticks. */
export const scaleOf = (edges: readonly MessageEdge[], sort: Asked["sort"]): Scale =>
  relative(
    edges.map((edge) => measureOf(edge, sort)),
    sort === "count" ? "msgs" : "bytes",
  );

export const widthOf = (edge: MessageEdge, sort: Asked["sort"], scale: Scale): number =>
  THIN * widthAt(position(measureOf(edge, sort), scale));

/** The area of an end is its share of what the greatest exchanges. */
function radii(ends: readonly End[], sort: Asked["sort"]): number[] {
  const most = Math.max(1, ...ends.map((end) => exchanged(end, sort)));
  return ends.map((end) => LEAST_R + (MOST_R - LEAST_R) * Math.sqrt(exchanged(end, sort) / most));
}

/** Ends in a picture of this size: those that exchange messages near each other, none over another. */
export function layout(
  { ends, edges }: Pick<Communication, "ends" | "edges">,
  sort: Asked["sort"],
  size: Size,
): Spot[] {
  const aspect = Math.min(2.6, Math.max(0.5, size.width / Math.max(1, size.height)));
  // The greatest begin in the middle.
  const bodies = radii(ends, sort).map((r, i): Body => ({
    r,
    x: LENGTH * 0.6 * Math.sqrt(i) * Math.cos(i * GOLDEN) * aspect ** 0.5,
    y: (LENGTH * 0.6 * Math.sqrt(i) * Math.sin(i * GOLDEN)) / aspect ** 0.5,
  }));
  const place = new Map(ends.map(({ key }, i) => [key, i]));
  const links = edges
    .map(({ from, to }) => ({ source: place.get(from) ?? -1, target: place.get(to) ?? -1 }))
    .filter(({ source, target }) => source >= 0 && target >= 0 && source !== target);
  const simulation = forceSimulation(bodies)
    .stop()
    .alphaDecay(1 - 0.001 ** (1 / STEPS))
    .force("x", forceX<Body>(0).strength(PULL / aspect))
    .force("y", forceY<Body>(0).strength(PULL * aspect))
    .force("links", forceLink<Body, (typeof links)[number]>(links).distance(LENGTH))
    .force(
      "push",
      pushApart((body) => -PUSH * body.r),
    )
    .force(
      "apart",
      keepApart((body) => body.r + 14, 0.7, 2),
    );
  for (let step = 0; step < STEPS; step += 1) simulation.tick();
  return fitted(
    bodies.map(({ x = 0, y = 0, r }, i) => ({ key: ends[i].key, x, y, r })),
    size,
  );
}

/** Moved and stretched so that they take the picture. */
function fitted(spots: readonly Spot[], { width, height }: Size): Spot[] {
  if (spots.length === 0) return [];
  const ends = (of: (spot: Spot) => number): [number, number] => [
    Math.min(...spots.map(of)),
    Math.max(...spots.map(of)),
  ];
  const [left, right] = ends(({ x }) => x);
  const [top, bottom] = ends(({ y }) => y);
  const room = {
    x: Math.max(1, width - 2 * Math.min(MARGIN.x, width / 4)),
    y: Math.max(1, height - 2 * Math.min(MARGIN.y, height / 4)),
  };
  const by = {
    x: Math.min(STRETCH, room.x / Math.max(1, right - left)),
    y: Math.min(STRETCH, room.y / Math.max(1, bottom - top)),
  };
  return spots.map((spot) => ({
    ...spot,
    x: width / 2 + (spot.x - (left + right) / 2) * by.x,
    y: height / 2 + (spot.y - (top + bottom) / 2) * by.y,
  }));
}

/** The end of a long name tells more than its begin: modules begin alike. */
export const shortened = (name: string, longest = LONGEST): string =>
  name.length <= longest ? name : `…${name.slice(1 - longest)}`;

interface Area {
  left: number;
  right: number;
  top: number;
  bottom: number;
}

const meet = (a: Area, b: Area): boolean =>
  a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;

/** Names that have room below, above or beside their ends; those that come first take it first. */
export function labels(
  spots: readonly Spot[],
  nameOf: (key: string) => string,
  size: Size,
): Label[] {
  const taken: Area[] = spots.map(({ x, y, r }) => ({
    left: x - r,
    right: x + r,
    top: y - r,
    bottom: y + r,
  }));
  const found: Label[] = [];
  for (const spot of spots) {
    const text = shortened(nameOf(spot.key));
    const free = places(spot, text).find(
      ({ area }) =>
        area.left >= 0 &&
        area.right <= size.width &&
        area.top >= 0 &&
        area.bottom <= size.height &&
        !taken.some((other) => meet(area, other)),
    );
    if (free === undefined) continue;
    taken.push(free.area);
    found.push(free.label);
  }
  return found;
}

/** Where a name may stand, the best place first. */
export function places({ key, x, y, r }: Spot, text: string): { label: Label; area: Area }[] {
  const width = text.length * LETTER + 2;
  const at = (lx: number, ly: number, anchor: Label["anchor"]) => {
    const left = anchor === "start" ? lx : anchor === "end" ? lx - width : lx - width / 2;
    return {
      label: { key, text, x: lx, y: ly, anchor },
      area: { left, right: left + width, top: ly - LINE + 3, bottom: ly + 3 },
    };
  };
  return [
    at(x, y + r + LINE, "middle"),
    at(x, y - r - 5, "middle"),
    at(x + r + 5, y + 4, "start"),
    at(x - r - 5, y + 4, "end"),
  ];
}

/** The loop of what an end sends itself, above it. */
export const loop = ({ x, y, r }: Spot): string => {
  const top = y - 0.8 * r;
  const high = y - r - 22;
  return `M${at(x - 0.5 * r, top)}C${at(x - 20, high)} ${at(x + 20, high)} ${at(x + 0.5 * r, top)}`;
};

export const at = (x: number, y: number): string => `${x.toFixed(1)},${y.toFixed(1)}`;

// Words ---------------------------------------------------------------------

const ENDS: Record<By, [string, string]> = {
  process: ["process", "processes"],
  kind: ["kind of processes", "kinds of processes"],
  node: ["node", "nodes"],
};

const many = (n: number, [one, more]: readonly [string, string]): string =>
  `${count(n)} ${n === 1 ? one : more}`;

const MESSAGES = ["message", "messages"] as const;
const PAIRS = ["pair", "pairs"] as const;

const sum = (amount: Pick<Amount, "count" | "bytes">): string =>
  `${many(amount.count, MESSAGES)} (${bytes(amount.bytes)})`;

/** What is there, what the filters leave, and what there is no room for. */
export function told({ edges, passed, all }: Communication, { by }: Asked, around: string): string {
  const parts = [`${sum(all)} between ${many(all.edges, PAIRS)} of ${many(all.ends, ENDS[by])}`];
  if (passed.edges < all.edges)
    parts.push(
      (around === "" ? "the filters leave " : `around ${around} there are `) +
        (passed.edges === 0 ? "none" : `${many(passed.edges, PAIRS)} with ${sum(passed)}`),
    );
  const hidden = leftOut(edges, passed);
  if (hidden.edges > 0)
    parts.push(`there is no room for ${many(hidden.edges, PAIRS)} of these, with ${sum(hidden)}`);
  return `${parts.join("; ")}.`;
}

/** What passes the filters and is not among these. */
export function leftOut(edges: readonly MessageEdge[], passed: Amount): Omit<Amount, "ends"> {
  const shown = (of: (edge: MessageEdge) => number) =>
    edges.reduce((all, edge) => all + of(edge), 0);
  return {
    edges: passed.edges - edges.length,
    count: passed.count - shown((edge) => edge.count),
    bytes: passed.bytes - shown((edge) => edge.bytes),
  };
}

/** An end for those who hear it. */
export function spoken(end: End, by: By): string {
  const sends = (n: number, size: number) => (n === 0 ? "none" : `${count(n)} (${bytes(size)})`);
  const of = by !== "process" && end.processes > 1 ? `, ${many(end.processes, ENDS.process)}` : "";
  const within =
    end.within > 0
      ? `, with ${by === "process" ? "itself" : "each other"} ${sends(end.within, end.within_bytes)}`
      : "";
  return `${end.name}${of}: messages sent ${sends(end.sent, end.sent_bytes)}, received ${sends(end.received, end.received_bytes)}${within}`;
}

// The address ---------------------------------------------------------------

const MOST = Number.MAX_SAFE_INTEGER;

const whole = (text: string | undefined): number => {
  const n = Math.floor(Number(text ?? ""));
  return Number.isFinite(n) && n > 0 ? Math.min(n, MOST) : 0;
};

/** What the address asks for; what it says wrongly is left out. */
export function asked(query: Readonly<Record<string, string>>, hasNodes: boolean): Asked {
  const by = query["ends"];
  return {
    by: by === "kind" || (by === "node" && hasNodes) ? by : "process",
    sort: query["widths"] === "bytes" ? "bytes" : "count",
    least: whole(query["least"]),
    mean: whole(query["mean"]),
    around: query["around"] ?? "",
  };
}
