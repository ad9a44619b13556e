// SPDX-License-Identifier: Apache-2.0
// The lines of the table: events that stand alone, incidents, and the events of those that are open.
import type { Direction } from "../../lib/table-model";
import { type Incident, isIncident } from "../../model/incidents";
import type { ClusterEvent, Level } from "../../model/protocol";

export interface Row {
  event: ClusterEvent;
  /** What the row stands for, or is a part of; null for an event alone. */
  incident: Incident | null;
  /** One of the events of an open incident. */
  part: boolean;
  /** Ids grow with time, and order those of one millisecond; an incident is at the time that it shows. */
  place: number;
}

export const rowId = ({ event, incident, part }: Row): string =>
  incident === null ? String(event.id) : part ? `p${event.id}` : `i${event.id}`;

export const levelOf = ({ event, incident, part }: Row): Level =>
  incident === null || part ? event.level : incident.level;

export const textOf = (event: ClusterEvent): string =>
  `${event.text} ${event.kind} ${event.node ?? ""} ${event.group ?? ""}`;

/** Kinds whose name says more, or worse, than what happened. */
const WORDS: Readonly<Record<string, string>> = {
  component_merged: "members came in",
  member_aside: "not waited for",
};

/**
 * What a kind is called. A group that goes on without a member that has died is not split, and one that
 * waits for no member yet that comes in does not do without it.
 */
export function kindText(kind: string, incident: Incident | null = null): string {
  if (kind === "component_split" && incident?.cause === "down") return "member lost";
  if (kind === "member_aside" && (incident?.cause === "created" || incident?.cause === "up"))
    return "brought up to date";
  return Object.hasOwn(WORDS, kind) ? WORDS[kind] : kind.replaceAll("_", " ");
}

/** What the events below the head are, in words behind their number. */
export function followers({ cause }: Incident, count: number): string {
  const what =
    cause === "linked" || cause === "unlinked"
      ? "more link"
      : cause === "silent"
        ? "more warning"
        : "consequence";
  return ` ${what}${count === 1 ? "" : "s"}`;
}

/** Those of which something passed the filters; of an incident that is open, what passed. */
export function rowsOf(
  all: readonly (ClusterEvent | Incident)[],
  passed: ReadonlySet<ClusterEvent>,
  opened: ReadonlySet<number>,
  direction: Direction,
): Row[] {
  const rows: Row[] = [];
  for (const one of all) {
    if (!isIncident(one)) {
      if (passed.has(one)) rows.push({ event: one, incident: null, part: false, place: one.id });
      continue;
    }
    const { id } = one.head;
    const parts = one.events.filter((event) => passed.has(event));
    if (parts.length === 0) continue;
    // The head stands above its parts, in either direction.
    const place = direction === "descending" ? id : id - 0.9;
    rows.push({ event: one.head, incident: one, part: false, place });
    if (!opened.has(one.head.id)) continue;
    parts.forEach((event, i) =>
      rows.push({
        event,
        incident: one,
        part: true,
        place: id - 0.8 + (0.7 * (i + 1)) / (parts.length + 1),
      }),
    );
  }
  return rows;
}
