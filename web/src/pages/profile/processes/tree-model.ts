// SPDX-License-Identifier: Apache-2.0
// The tree of processes: which rows are in sight. Pure.
import type { Branch } from "../answers";

/** Below so many rows all are open at first. */
const FEW = 60;

export interface Twig {
  branch: Branch;
  at: number;
  hasMore: boolean;
  open: boolean;
}

/** Rows that are shut at first: in a large tree all below the second line. */
export function shutAtFirst(rows: readonly Branch[]): Set<number> {
  const shut = new Set<number>();
  if (rows.length <= FEW) return shut;
  rows.forEach(({ depth }, i) => {
    if (depth >= 1 && hasMore(rows, i)) shut.add(i);
  });
  return shut;
}

const hasMore = (rows: readonly Branch[], i: number): boolean =>
  (rows[i + 1]?.depth ?? 0) > (rows[i]?.depth ?? 0);

/** The rows above a process on its way to the root; none where it is not in the tree. */
export function ancestors(rows: readonly Branch[], process: number): number[] {
  const found: number[] = [];
  const at = rows.findIndex((row) => row.process === process);
  let depth = rows[at]?.depth ?? 0;
  for (let i = at - 1; i >= 0 && depth > 0; i -= 1) {
    const above = rows[i]?.depth ?? 0;
    if (above >= depth) continue;
    found.push(i);
    depth = above;
  }
  return found;
}

/** Those whose ancestors are all open, at most so many. */
export function inSight(rows: readonly Branch[], shut: ReadonlySet<number>, most: number): Twig[] {
  const found: Twig[] = [];
  let hidden = Infinity;
  for (const [i, branch] of rows.entries()) {
    if (branch.depth > hidden) continue;
    hidden = shut.has(i) ? branch.depth : Infinity;
    found.push({ branch, at: i, hasMore: hasMore(rows, i), open: !shut.has(i) });
    if (found.length >= most) break;
  }
  return found;
}
