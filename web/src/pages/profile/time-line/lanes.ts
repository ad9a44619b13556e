// SPDX-License-Identifier: Apache-2.0
// Where things are on the time line: the graph, schedulers, processes. Pure.
import type { Interval, Lane, Node } from "../answers";
import { nodeOf, nodeOfScheduler, ownName, schedulerName } from "../nodes-model";

export interface Row {
  kind: "scheduler" | "path" | "groups" | "process" | "node";
  id: number;
  label: string;
  y: number;
  height: number;
}

export interface Layout {
  /** The labels' width. */
  left: number;
  /** The picture's, beside the labels. */
  width: number;
  axis: number;
  graph: { y: number; height: number };
  rows: Row[];
  height: number;
}

export const LANE = 20;
const SCHEDULER = 12;
const PATH = 14;
const GROUPS = 14;
const NODE = 34;
const AXIS = 24;
const GRAPH = 110;
const GAP = 10;

export function layout(
  width: number,
  schedulers: readonly number[],
  processes: readonly { process: number; name: string }[],
  hasPath = false,
  nodes: readonly Node[] = [],
  hasGroups = false,
): Layout {
  const left = width < 640 ? 96 : 190;
  const graph = { y: AXIS, height: GRAPH };
  const rows: Row[] = [];
  let y = AXIS + GRAPH + GAP;
  const add = (kind: Row["kind"], id: number, label: string, height: number, gap = 2) => {
    rows.push({ kind, id, label, y, height });
    y += height + gap;
  };
  const path = () => hasPath && add("path", 0, "critical path", PATH, 6);
  /** Operations on groups, of each node. */
  const groups = (id: number) => hasGroups && add("groups", id, "groups", GROUPS, 6);
  if (nodes.length > 0) path();
  // The rows of each node are together, below a row of its own; those of no node come last.
  for (const node of [...nodes, undefined]) {
    const awake = schedulers.filter((id) => nodeOfScheduler(id, nodes) === node);
    const lanes = processes.filter(({ process }) => nodeOf(process, nodes) === node);
    if (node !== undefined) {
      add("node", node.number, node.node, NODE, 3);
      groups(node.number);
    }
    for (const id of awake) add("scheduler", id, schedulerName(id, nodes), SCHEDULER);
    if (awake.length > 0) y += GAP;
    if (nodes.length === 0) {
      path();
      groups(0);
    }
    for (const { process, name } of lanes) add("process", process, ownName(name, node), LANE);
    if (node !== undefined) y += GAP;
  }
  return { left, width: Math.max(1, width - left), axis: AXIS, graph, rows, height: y + 4 };
}

export const rowAt = (rows: readonly Row[], y: number): Row | undefined =>
  rows.find((row) => y >= row.y && y < row.y + row.height + 2);

/** The top of the axis of the graph: round, with the schedulers' line in sight. */
export function graphTop(
  running: readonly number[],
  runnable: readonly number[],
  online: number | null,
): number {
  let most = Math.max(1, online ?? 1);
  running.forEach((n, i) => {
    most = Math.max(most, n + (runnable[i] ?? 0));
  });
  const power = 10 ** Math.floor(Math.log10(most));
  return [1, 1.2, 1.5, 2, 3, 4, 5, 6, 8, 10].map((n) => n * power).find((n) => n >= most) ?? most;
}

/** The parts of a column of a lane from the bottom on, as shares of its height. */
export function stack(
  lane: Lane,
  column: number,
): { running: number; runnable: number; gc: number; waiting: number } {
  const at = (list: readonly number[]) => Math.min(1, (list[column] ?? 0) / 1000);
  return {
    running: at(lane.running),
    runnable: at(lane.runnable),
    gc: at(lane.gc),
    waiting: at(lane.waiting),
  };
}

export interface Heights {
  up: number;
  more: number;
  gc: number;
  line: boolean;
}

/** The same in whole pixels: any share above 0 has at least one, and all stay within the lane. */
export function heightsOf(
  shares: { running: number; runnable: number; gc: number; waiting: number },
  height: number,
): Heights {
  const pixels = (share: number) => (share > 0 ? Math.max(1, Math.round(share * height)) : 0);
  const more = pixels(shares.runnable);
  return {
    up: Math.min(pixels(shares.running), height - more),
    more,
    gc: pixels(shares.gc),
    line: shares.waiting > 0,
  };
}

export const STATES = ["runs", "waits for a scheduler", "waits", "collects garbage", "exits"];

/** What a process does at a time; a garbage collection wins over the run that it is part of. */
export function intervalAt(intervals: readonly Interval[], t: number): Interval | undefined {
  let found: Interval | undefined;
  for (const one of intervals) {
    if (one[1] > t) break;
    if (t < one[1] + one[2] && (found === undefined || one[0] === 3)) found = one;
  }
  return found;
}

/** Several intervals in one pixel are one, of what takes most of it; fewer rectangles are drawn. */
export function visibleIntervals(
  intervals: readonly Interval[],
  nsOfPixel: number,
  from: number,
  to: number,
): Interval[] {
  const shown: Interval[] = [];
  let run: Interval | null = null;
  for (const one of intervals) {
    if (one[1] + one[2] < from) continue;
    if (one[1] > to) break;
    if (one[2] >= nsOfPixel) {
      shown.push(one);
      run = null;
    } else if (run !== null && one[1] + one[2] - run[1] <= nsOfPixel) {
      // The busier state wins: a run between two waits is what one looks for.
      if (one[0] < run[0]) run[0] = one[0];
      run[2] = one[1] + one[2] - run[1];
    } else {
      run = [...one];
      shown.push(run);
    }
  }
  return shown;
}
