// SPDX-License-Identifier: Apache-2.0
// Which alarms the page shows, and what it says of them.
import type { Alarm, AlarmSeverity, AlarmState, Concerned, Silence } from "../../model/protocol";

export type Shown = AlarmSeverity | "all";

export const STATES: readonly (readonly [AlarmState, string, string])[] = [
  ["raised", "Raised", "Present, and acknowledged by nobody"],
  ["acknowledged", "Acknowledged", "Seen by somebody; raised again when it becomes major"],
  ["cleared", "Over", "No longer present, the newest first"],
];

export interface Filter {
  state: AlarmState;
  severity: Shown;
  tag: string;
}

export const wanted = (alarms: readonly Alarm[], filter: Filter): readonly Alarm[] =>
  alarms.filter(
    (alarm) =>
      alarm.state === filter.state &&
      (filter.severity === "all" || alarm.severity === filter.severity) &&
      (filter.tag === "" || alarm.tags.includes(filter.tag)),
  );

/** All tags with how many alarms have each; the chosen one in any case. */
export function tagsOf(alarms: readonly Alarm[], chosen: string): [string, number][] {
  const tags = new Map<string, number>(chosen === "" ? [] : [[chosen, 0]]);
  for (const alarm of alarms) for (const tag of alarm.tags) tags.set(tag, (tags.get(tag) ?? 0) + 1);
  return [...tags].sort((a, b) => (a[0] < b[0] ? -1 : 1));
}

/** "2 major, 1 minor; 3 acknowledged". */
export function counted(alarms: readonly Alarm[], total: number): string {
  const raised = alarms.filter((alarm) => alarm.state === "raised");
  const parts = (["major", "minor"] as const)
    .map((severity) => [raised.filter((a) => a.severity === severity).length, severity] as const)
    .filter(([n]) => n > 0)
    .map(([n, severity]) => `${n} ${severity}`);
  const acknowledged = alarms.filter((alarm) => alarm.state === "acknowledged").length;
  const more = total - alarms.length;
  return (
    (parts.length === 0 ? "None is raised" : parts.join(", ")) +
    (acknowledged === 0 ? "" : `; ${acknowledged} acknowledged`) +
    (more > 0 ? `; ${more} more are not shown` : "") +
    "."
  );
}

/** What a silence of this alarm is for, and no other of its name. An alarm of a family concerns groups, too. */
export function concerned({ place, nodes, groups }: Alarm): Concerned {
  if (place.family !== undefined) return { family: place.family };
  const [node] = nodes;
  if (node !== undefined) return { node };
  const [group] = groups;
  return group === undefined ? {} : { group };
}

/** What a silence is for: "node web*, major". */
export const silenced = ({ match }: Silence): string =>
  Object.entries(match)
    .map(([key, value]) => (key === "severity" ? value : `${key} ${value}`))
    .join(", ");
