// SPDX-License-Identifier: Apache-2.0
// The critical path for a picture and in words. Pure.
import type { Path, Segment, StepKind } from "../answers";
import { lasting } from "../range";

export const STEP_KINDS: readonly StepKind[] = [
  "running",
  "runnable",
  "message",
  "between",
  "waiting",
];

/** The kinds of steps of a path; messages between nodes are there only where several were recorded. */
export const kindsOf = (path: Path): readonly StepKind[] =>
  path.nodes.length > 0 ? STEP_KINDS : STEP_KINDS.filter((kind) => kind !== "between");

export const STEPS: Record<StepKind, string> = {
  running: "runs",
  runnable: "waits for a scheduler",
  message: "messages",
  between: "messages between nodes",
  waiting: "waits",
};

/** The same where there is little room. */
export const SHORT: Record<StepKind, string> = {
  running: "runs",
  runnable: "no scheduler",
  message: "message",
  between: "other node",
  waiting: "waits",
};

/** What the time of each kind means for making the program faster. */
export const SAVES: Record<StepKind, string> = {
  running: "the most that is saved if these processes run for less time",
  runnable: "the most that is saved by more schedulers, or by fewer processes that run at a time",
  message: "from when a message was sent to when its receiver could run",
  between: "the same from one node to another: the network takes most of it",
  waiting: "no recorded message ended the wait: a timer, a port, another node",
};

export const segmentAt = (segments: readonly Segment[], t: number): Segment | undefined =>
  segments.find(({ from, to }) => from <= t && t < to);

/** What a step is, for somebody who points at it. */
export function stepText(step: Segment): string {
  const { kind, process } = step;
  const place = step.function === null ? "" : ` in ${step.function}`;
  const what =
    kind === "message" || kind === "between"
      ? `a message${step.sender === null ? "" : ` from ${step.sender}`} is on its way to ${process}`
      : `${process} ${STEPS[kind]}${place}`;
  return `${what} for ${lasting(step.to - step.from)}`;
}

/** Steps that share a pixel are one, of the kind that has most of it. */
export function joined(
  segments: readonly Segment[],
  nsOfPixel: number,
): [kind: StepKind, from: number, to: number][] {
  const found: [StepKind, number, number][] = [];
  let sums: Partial<Record<StepKind, number>> = {};
  let run: [StepKind, number, number] | null = null;
  for (const { kind, from, to } of segments) {
    if (to - from >= nsOfPixel) {
      found.push([kind, from, to]);
      run = null;
      continue;
    }
    if (run === null || to - run[1] > nsOfPixel) {
      run = [kind, from, to];
      sums = {};
      found.push(run);
    }
    const sum = (sums[kind] ?? 0) + (to - from);
    sums[kind] = sum;
    if (sum > (sums[run[0]] ?? 0)) run[0] = kind;
    run[2] = Math.max(run[2], to);
  }
  return found;
}

/** The longest steps, the earliest first. */
export function longest(path: Path, most: number): Segment[] {
  return [...path.segments]
    .sort((a, b) => b.to - b.from - (a.to - a.from))
    .slice(0, most)
    .sort((a, b) => a.from - b.from);
}

/** Those on the path, the one with the largest part of it first. */
export const numbersOf = (path: Path, most: number): number[] =>
  path.processes.slice(0, most).map(({ number }) => number);
