// SPDX-License-Identifier: Apache-2.0
// What a lane of the time line shows at a time, in words. Pure.
import type { Window } from "../answers";
import { intervalAt, type Row, stack, STATES } from "./lanes";
import { lasting } from "../range";

/** What a process does at a time: the shares of a column from afar, the interval from near. */
export function laneText(row: Row, w: Window, t: number, column: number): string {
  const lane = w.lanes.find(({ process }) => process === row.id);
  if (lane === undefined) return row.label;
  if (lane.intervals === null) {
    const { running, runnable, waiting, gc } = stack(lane, column);
    const parts: [string, number][] = [
      ["runs", running],
      ["waits for a scheduler", runnable],
      ["waits", waiting],
      ["collects garbage", gc],
    ];
    const told = parts
      .filter(([, share]) => share > 0)
      .map(([what, share]) => `${what} ${Math.max(1, Math.round(100 * share))} %`);
    return `${row.label} ${told.join(", ") || "is not there"}`;
  }
  const one = intervalAt(lane.intervals, t);
  if (one === undefined) return `${row.label} is not there, or was not seen yet`;
  const [what, , ns, site, waker] = one;
  const where = site > 0 && w.sites[site] !== undefined ? ` in ${w.sites[site]}` : "";
  const whom = waker > 0 && w.names[waker] !== undefined ? `, until ${w.names[waker]} sends` : "";
  return `${row.label} ${STATES[what] ?? ""} for ${lasting(ns)}${where}${whom}`;
}
