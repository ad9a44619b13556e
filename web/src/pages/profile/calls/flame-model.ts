// SPDX-License-Identifier: Apache-2.0
// A tree of calls as boxes. Pure.
import type { Frame } from "../answers";

export interface Box {
  frame: Frame;
  /** Shares of the width. */
  x: number;
  width: number;
  depth: number;
}

/** Below so much of the width nothing can be seen. */
const LEAST = 0.0005;

/** The boxes of a tree, outermost functions first; children stand below their parent from its left on. */
export function boxes(frames: readonly Frame[], whole: number): Box[] {
  const found: Box[] = [];
  const walk = (list: readonly Frame[], left: number, depth: number) => {
    let x = left;
    for (const frame of list) {
      const width = frame.ns / Math.max(1, whole);
      if (width >= LEAST) {
        found.push({ frame, x, width, depth });
        walk(frame.below, x, depth + 1);
      }
      x += width;
    }
  };
  walk(frames, 0, 0);
  return found;
}

/** The frame that a path of functions leads to, with the path as far as it does. */
export function follow(frames: readonly Frame[], path: readonly string[]): Frame[] {
  const found: Frame[] = [];
  let list = frames;
  for (const name of path) {
    const next = list.find((frame) => frame.function === name);
    if (next === undefined) break;
    found.push(next);
    list = next.below;
  }
  return found;
}
