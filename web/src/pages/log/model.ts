// SPDX-License-Identifier: Apache-2.0
// The events of the nodes' logs that the page has: the newest, and older ones that were asked for.
import type { LogEvent, LogInfo, LogLevel, LogPage } from "../../model/protocol";

/** Levels from the most severe; what is chosen is shown with all that is more severe. */
export const LEVELS: readonly (readonly [LogLevel | "", string])[] = [
  ["", "All levels"],
  ["debug", "Debug and worse"],
  ["info", "Info and worse"],
  ["notice", "Notice and worse"],
  ["warning", "Warning and worse"],
  ["error", "Error and worse"],
  ["critical", "Critical and worse"],
  ["alert", "Alert and worse"],
  ["emergency", "Emergency"],
];

/** 0 is the most severe. */
export const severity = (level: LogLevel): number =>
  LEVELS.length - 1 - LEVELS.findIndex(([one]) => one === level);

export interface Filter {
  text: string;
  level: LogLevel | "";
  node: string;
  group: string;
  module: string;
  /** Nothing after this time (Unix ms); null for all. */
  until: number | null;
}

/** Newest first; `next` is the number before which there may be older ones, null where there are none. */
export interface Shown {
  events: readonly LogEvent[];
  next: number | null;
}

/** More than anybody reads; older ones can be asked for again. */
const MOST = 5000;

export const NOTHING: Shown = { events: [], next: null };

/** What the request is made of, besides where it begins. */
export const asked = (filter: Filter): Record<string, string | number> => ({
  ...(filter.text === "" ? {} : { text: filter.text }),
  ...(filter.level === "" ? {} : { level: filter.level }),
  ...(filter.node === "" ? {} : { node: filter.node }),
  ...(filter.group === "" ? {} : { group: filter.group }),
  ...(filter.module === "" ? {} : { module: filter.module }),
  ...(filter.until === null ? {} : { to: filter.until }),
});

/**
 * With what is new: a page of events after the newest. Where that page has not all of them, what is before it
 * begins anew, so that nothing is missing in between.
 */
export function newer(shown: Shown, page: LogPage): Shown {
  if (page.events.length === 0) return shown;
  if (page.next !== null) return { events: page.events, next: page.next };
  const events = [...page.events, ...shown.events];
  return events.length <= MOST
    ? { events, next: shown.next }
    : { events: events.slice(0, MOST), next: events[MOST - 1].id };
}

/** With a page of older ones. */
export const older = (shown: Shown, page: LogPage): Shown => ({
  events: [...shown.events, ...page.events],
  next: page.next,
});

/** After which number new ones are asked for. */
export const newest = (shown: Shown, last: number): number =>
  Math.max(last, shown.events[0]?.id ?? 0);

const REASONS: Record<string, string> = {
  rate: "more than a node may tell in a second",
  queue: "not taken in time",
  relay: "lost between monitoring nodes",
  overload: "more than could be stored",
};

/** What was left out, in words; empty where nothing was. */
export function leftOut({ lost }: LogInfo, count: (n: number) => string): string {
  const by = new Map<string, number>();
  for (const { reason, events } of lost) by.set(reason, (by.get(reason) ?? 0) + events);
  return [...by]
    .map(
      ([reason, events]) =>
        `${count(events)} left out: ${Object.hasOwn(REASONS, reason) ? REASONS[reason] : reason}`,
    )
    .join("; ");
}

export const kept = ({ events }: LogInfo): number =>
  Object.values(events).reduce((sum, n) => sum + n, 0);
