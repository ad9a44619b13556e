// SPDX-License-Identifier: Apache-2.0
// Where a tooltip goes.

export interface Room {
  width: number;
  height: number;
  /** Taken by what lies over it. */
  top: number;
  bottom: number;
}

const GAP = 12;
const EDGE = 8;

/**
 * Where a box of that size goes so that it stands beside a circle and does not cover it: at its right or
 * left, else below or above it, and always inside the room.
 */
export function beside(
  circle: { x: number; y: number; r: number },
  size: { width: number; height: number },
  room: Room,
): { left: number; top: number } {
  const { x, y, r } = circle;
  const within = (at: number, least: number, most: number) => Math.max(least, Math.min(most, at));
  const [first, last] = [room.top + EDGE, room.height - room.bottom - size.height - EDGE];
  const furthest = room.width - size.width - EDGE;
  const level = within(y - size.height / 2, first, last);
  const right = x + r + GAP;
  if (right <= furthest) return { left: right, top: level };
  const left = x - r - GAP - size.width;
  if (left >= EDGE) return { left, top: level };
  const below = y + r + GAP;
  const above = y - r - GAP - size.height;
  const top = below <= last ? below : above >= first ? above : within(below, first, last);
  return { left: within(x - size.width / 2, EDGE, furthest), top };
}
