// SPDX-License-Identifier: Apache-2.0
// On which schedulers a process was, as rectangles of a picture: time to the right, a row for each scheduler. Pure.
import type { Stay } from "../answers";
import { type Range, span } from "../range";

export interface Box {
  /** Shares of the picture, in percent. */
  readonly x: number;
  readonly width: number;
  readonly row: number;
}

/** Thinner ones would not be seen. */
const LEAST = 0.15;

/** The rows of the schedulers, and the stays as far as they are in the range. */
export function boxes(stays: readonly Stay[], schedulers: readonly number[], range: Range): Box[] {
  const rows = new Map(schedulers.map((scheduler, row) => [scheduler, row]));
  return stays.flatMap(([scheduler, from, to]) => {
    const row = rows.get(scheduler);
    const [a, b] = [Math.max(from, range.from), Math.min(to, range.to)];
    if (row === undefined || b <= a) return [];
    const share = 100 / span(range);
    return [{ x: (a - range.from) * share, width: Math.max(LEAST, (b - a) * share), row }];
  });
}
