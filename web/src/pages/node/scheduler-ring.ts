// SPDX-License-Identifier: Apache-2.0
// Where the schedulers of a node stand on a ring: by socket, then core, then number, with a narrow gap between
// cores and a wide one between sockets. Lengths of run queues are drawn on one absolute scale for all nodes.

export interface RingScheduler {
  id: number;
  socket: number | null;
  core: number | null;
}

/** Angles in radians, clockwise from the top. */
export interface Arc {
  a0: number;
  a1: number;
}

export interface Slot extends Arc {
  id: number;
  socket: number | null;
  core: number | null;
}

interface CoreArc extends Arc {
  socket: number | null;
  core: number | null;
  ids: number[];
}

interface SocketArc extends Arc {
  socket: number | null;
  ids: number[];
}

export interface RingLayout {
  slots: Slot[];
  cores: CoreArc[];
  sockets: SocketArc[];
  byId: ReadonlyMap<number, Slot>;
}

/** How far a process moved: what caches it may still find warm. */
export type Distance = "core" | "socket" | "other" | "unknown";

/** Gaps in widths of a scheduler, and at most so many radians: with few schedulers a width is much. */
const INNER_GAP = [0.08, 0.03] as const;
const CORE_GAP = [0.35, 0.07] as const;
const SOCKET_GAP = [1.4, 0.22] as const;

const order = (a: number | null, b: number | null): number =>
  (a === null ? 1 : 0) - (b === null ? 1 : 0) || (a ?? 0) - (b ?? 0);

/** Places schedulers on the ring. */
export function ringLayout(schedulers: readonly RingScheduler[]): RingLayout {
  const all = [...schedulers].sort(
    (a, b) => order(a.socket, b.socket) || order(a.core, b.core) || a.id - b.id,
  );
  const several = new Set(all.map((one) => one.socket)).size > 1;
  const wanted = all.map((one, i) => {
    const next = all[(i + 1) % all.length];
    if (next.socket !== one.socket || (i === all.length - 1 && several)) return SOCKET_GAP;
    return next.core !== one.core || one.core === null ? CORE_GAP : INNER_GAP;
  });
  const even = (2 * Math.PI) / (all.length + wanted.reduce((sum, [widths]) => sum + widths, 0));
  const gaps = wanted.map(([widths, most]) => (all.length < 2 ? 0 : Math.min(widths * even, most)));
  const width = (2 * Math.PI - gaps.reduce((sum, gap) => sum + gap, 0)) / Math.max(1, all.length);
  const slots: Slot[] = [];
  const cores: CoreArc[] = [];
  const sockets: SocketArc[] = [];
  let at = (gaps[gaps.length - 1] ?? 0) / 2;
  all.forEach((one, i) => {
    const slot: Slot = { id: one.id, socket: one.socket, core: one.core, a0: at, a1: at + width };
    slots.push(slot);
    const core = cores[cores.length - 1];
    if (core && one.core !== null && core.core === one.core && core.socket === one.socket)
      join(core, slot);
    else if (one.core !== null)
      cores.push({ socket: one.socket, core: one.core, a0: slot.a0, a1: slot.a1, ids: [one.id] });
    const socket = sockets[sockets.length - 1];
    if (socket && socket.socket === one.socket) join(socket, slot);
    else sockets.push({ socket: one.socket, a0: slot.a0, a1: slot.a1, ids: [one.id] });
    at += width + gaps[i];
  });
  return { slots, cores, sockets, byId: new Map(slots.map((slot) => [slot.id, slot])) };
}

function join(arc: CoreArc | SocketArc, slot: Slot): void {
  arc.a1 = slot.a1;
  arc.ids.push(slot.id);
}

/** How far apart two schedulers are; unknown where the machine does not tell its cores. */
export function distance(layout: RingLayout, from: number, to: number): Distance {
  const a = layout.byId.get(from);
  const b = layout.byId.get(to);
  if (!a || !b || a.socket === null || b.socket === null) return "unknown";
  if (a.socket !== b.socket) return "other";
  return a.core !== null && a.core === b.core ? "core" : "socket";
}

/** Processes waiting that fill the whole length of a bar. */
const QUEUE_END = 100;

/** The length of a bar, 0 to 1: logarithmic, 1 process is seen, 100 fill it, whatever the other bars are. */
export function queueLength(queue: number): number {
  return queue <= 0 ? 0 : Math.min(1, Math.log(1 + queue) / Math.log(1 + QUEUE_END));
}

/** The step of the colour scale: 0 idle, 1: 1 or 2, 2: to 9, 3: to 49, 4: 50 and more. */
export function queueStep(queue: number): 0 | 1 | 2 | 3 | 4 {
  if (queue < 1) return 0;
  if (queue < 3) return 1;
  if (queue < 10) return 2;
  return queue < 50 ? 3 : 4;
}

export const QUEUE_STEPS: readonly string[] = ["0", "1–2", "3–9", "10–49", "50+"];

/** A point at an angle and a distance from the middle. */
export const polar = (angle: number, radius: number): [number, number] => [
  Math.sin(angle) * radius,
  -Math.cos(angle) * radius,
];

const xy = (angle: number, radius: number): string =>
  polar(angle, radius)
    .map((one) => one.toFixed(2))
    .join(",");

/** The path of a ring's sector between two radii. */
export function sector(arc: Arc, inner: number, outer: number): string {
  // An arc that ends where it begins is not drawn at all.
  const a1 = Math.min(arc.a1, arc.a0 + 2 * Math.PI - 1e-3);
  const large = a1 - arc.a0 > Math.PI ? 1 : 0;
  return (
    `M${xy(arc.a0, outer)}A${outer},${outer} 0 ${large} 1 ${xy(a1, outer)}` +
    `L${xy(a1, inner)}A${inner},${inner} 0 ${large} 0 ${xy(arc.a0, inner)}Z`
  );
}

/** The path of a migration inside the ring: bent to the middle, the more the farther it goes. */
export function migrationPath(
  layout: RingLayout,
  from: number,
  to: number,
  radius: number,
): string | null {
  const a = layout.byId.get(from);
  const b = layout.byId.get(to);
  if (!a || !b || a === b) return null;
  const start = (a.a0 + a.a1) / 2;
  const end = (b.a0 + b.a1) / 2;
  const apart = Math.abs(Math.atan2(Math.sin(end - start), Math.cos(end - start))) / Math.PI;
  const [x0, y0] = polar(start, radius);
  const [x1, y1] = polar(end, radius);
  const pull = 0.85 - 0.75 * apart;
  const c = ((x0 + x1) / 2) * pull;
  const d = ((y0 + y1) / 2) * pull;
  return `M${xy(start, radius)}Q${c.toFixed(2)},${d.toFixed(2)} ${xy(end, radius)}`;
}
