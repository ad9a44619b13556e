// SPDX-License-Identifier: Apache-2.0
// Which events are shown.
import type { ClusterEvent, Level } from "../../model/protocol";

export interface Filter {
  /** "" for all. */
  kind: string;
  /** This level and worse. */
  level: Level | "";
  node: string;
  group: string;
  /** Nothing after this time (Unix ms); null for all. */
  until: number | null;
}

/** Levels from the least; what is chosen is shown with all that is worse. */
export const LEVELS: readonly (readonly [Level | "", string])[] = [
  ["", "All levels"],
  ["info", "Info and worse"],
  ["notice", "Notice and worse"],
  ["warning", "Warning and worse"],
  ["error", "Error"],
];

const rank = (level: Level | ""): number => LEVELS.findIndex(([one]) => one === level);

/** All events of both, each once, oldest first. */
export function merged(
  a: readonly ClusterEvent[],
  b: readonly ClusterEvent[],
): readonly ClusterEvent[] {
  if (b.length === 0) return a;
  const byId = new Map<number, ClusterEvent>();
  for (const event of [...a, ...b]) byId.set(event.id, event);
  return [...byId.values()].sort((x, y) => x.id - y.id);
}

export function passing(events: readonly ClusterEvent[], filter: Filter): readonly ClusterEvent[] {
  const least = rank(filter.level);
  return events.filter(
    (event) =>
      (filter.kind === "" || event.kind === filter.kind) &&
      (filter.level === "" || rank(event.level) >= least) &&
      (filter.node === "" || event.node === filter.node) &&
      (filter.group === "" || event.group === filter.group) &&
      (filter.until === null || event.t <= filter.until),
  );
}

/** The kinds there are, and the chosen one though none of it may be here. */
export function kindsOf(events: readonly ClusterEvent[], chosen: string): string[] {
  const kinds = new Set(events.map((event) => event.kind));
  if (chosen !== "") kinds.add(chosen);
  return [...kinds].sort();
}

/** Before which id older ones are asked for: the oldest shown, else the oldest known; null where none is. */
export function earlier(
  shown: readonly ClusterEvent[],
  all: readonly ClusterEvent[],
): number | null {
  return (shown[0] ?? all[0])?.id ?? null;
}
