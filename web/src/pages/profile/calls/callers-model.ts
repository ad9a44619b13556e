// SPDX-License-Identifier: Apache-2.0
// Who calls a function, and what it calls. Pure.
import type { CallGraph, Func } from "../answers";

export interface Neighbour {
  /** 0 where it is not known. */
  function: number;
  name: string;
  calls: number;
  /** Of a caller the time that it gives; of one that is called what it takes. */
  ns: number;
}

export interface Around {
  callers: Neighbour[];
  callees: Neighbour[];
  /** How often it calls itself. */
  itself: number;
  /** Neighbours that have less than what is asked for. */
  hidden: { callers: number; callees: number };
}

export const UNKNOWN_CALLER = "not known, or none";

/** Functions with at least this share of the time, in the order in which they come. */
export const atLeast = (graph: CallGraph, least: number, whole: number): Func[] =>
  graph.functions.filter(({ all }) => all >= least * whole);

/** The neighbours of a function with at least this share of the time, the longest first. */
export function around(graph: CallGraph, chosen: number, least: number, whole: number): Around {
  const names = new Map(graph.functions.map((one) => [one.function, one.name]));
  const name = (n: number) =>
    n === 0 ? UNKNOWN_CALLER : (names.get(n) ?? graph.names[String(n)] ?? "?");
  const found: Around = { callers: [], callees: [], itself: 0, hidden: { callers: 0, callees: 0 } };
  for (const [caller, callee, calls, ns] of graph.edges) {
    if (caller === chosen && callee === chosen) found.itself += calls;
    else if (callee === chosen || caller === chosen) {
      const side = callee === chosen ? "callers" : "callees";
      const other = callee === chosen ? caller : callee;
      if (ns < least * whole) found.hidden[side] += 1;
      else found[side].push({ function: other, name: name(other), calls, ns });
    }
  }
  const longest = (a: Neighbour, b: Neighbour) => b.ns - a.ns || b.calls - a.calls;
  found.callers.sort(longest);
  found.callees.sort(longest);
  return found;
}

export interface Line {
  /** Where it ends on the side of the neighbours; it ends in the middle on the other one. */
  y: number;
  /** Of all that is drawn on this side. */
  share: number;
}

/** The lines from the rows of one side to the middle. */
export function lines(neighbours: readonly Neighbour[], row: number): Line[] {
  const most = Math.max(1, ...neighbours.map(({ ns }) => ns));
  return neighbours.map(({ ns }, i) => ({ y: (i + 0.5) * row, share: ns / most }));
}

/** The part of all its time that a function has in what is shown; null where nothing is outside. */
export const within = ({ all, whole }: Func): number | null =>
  whole === null ? null : whole.all === 0 ? 0 : Math.min(1, all / whole.all);
