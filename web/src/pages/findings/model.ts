// SPDX-License-Identifier: Apache-2.0
// Which findings the page shows, and which of them it opens.
import { probeOf } from "../../model/probe";
import { RANK } from "../../model/findings";
import type { State } from "../../model/triage";
import type { Finding, Severity, TopologyNode } from "../../model/protocol";

export type Shown = Severity | "all";

/** Which of them: those to look at, or those that were dealt with. */
export const STATES: readonly (readonly [State, string, string])[] = [
  ["open", "To look at", "Neither acknowledged nor muted in this browser"],
  [
    "acknowledged",
    "Acknowledged",
    "Seen, in this browser; a finding that ends and comes back is to look at again",
  ],
  ["muted", "Muted", "Not counted, and not marked on the map, for a while or for good"],
];

export const wanted = (findings: readonly Finding[], shown: Shown, kind = ""): readonly Finding[] =>
  findings.filter(
    (finding) =>
      (shown === "all" || finding.severity === shown) && (kind === "" || finding.kind === kind),
  );

/** All kinds with how many there are of each, the most frequent first; the chosen one in any case. */
export function kindsOf(findings: readonly Finding[], chosen: string): [string, number][] {
  const kinds = new Map<string, number>(chosen === "" ? [] : [[chosen, 0]]);
  for (const finding of findings) kinds.set(finding.kind, (kinds.get(finding.kind) ?? 0) + 1);
  return [...kinds].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1));
}

/** How many are shown in full without being asked for. */
const FEW = 4;

/** Which are open at first: all of few, else the first of each kind. Many of one kind differ in their place only. */
export function opened(ordered: readonly Finding[]): ReadonlySet<string> {
  if (ordered.length <= FEW) return new Set(ordered.map((finding) => finding.id));
  const kinds = new Set<string>();
  return new Set(
    ordered
      .filter((finding) => {
        const first = !kinds.has(finding.kind);
        kinds.add(finding.kind);
        return first;
      })
      .map((finding) => finding.id),
  );
}

/** "1 critical, 2 warnings". */
export function counted(findings: readonly Finding[], others = 0): string {
  const rest =
    others === 0 ? "" : others === 1 ? "; 1 in another state" : `; ${others} in other states`;
  if (findings.length === 0) return `None at this time${rest}.`;
  const all = Object.keys(RANK)
    .map(
      (severity) =>
        [severity, findings.filter((finding) => finding.severity === severity).length] as const,
    )
    .filter(([, n]) => n > 0)
    .map(([severity, n]) => `${n} ${severity}${severity === "warning" && n > 1 ? "s" : ""}`)
    .join(", ");
  return all + rest;
}

/** What is looked for; said where nothing was found. */
export const CHECKS: readonly (readonly [string, string])[] = [
  ["Traffic past the gateways", "between nodes that share no group"],
  ["Links nobody needs", "up, without a reason and without traffic"],
  ["Gateways near saturation", "by utilisation, bytes sent and bytes queued on a link"],
  [
    "Nodes in the wrong group",
    "whose traffic goes to another group's members, with what a move would save",
  ],
  ["Groups too large", "for the rate at which names are registered in them"],
  ["Hot names", "a process that gets most of what is traced"],
  ["Nodes that are down or not converged", "that see other members than the rest, and why"],
  ["Limits", "of processes, ports, atoms and ETS tables that are nearly used up"],
  [
    "Load",
    "memory far above the other nodes', long message queues, long run queues at full utilisation",
  ],
  [
    "The monitoring itself",
    "nodes it does not reach, what was lost, what it costs, how many could take over",
  ],
];

/** What cannot be found of nodes without a probe that reports to this monitor; null where all have one. */
export function unchecked(
  nodes: readonly Pick<TopologyNode, "source" | "why" | "status">[],
): string | null {
  const up = nodes.filter((node) => node.status === "up");
  const silent = up.filter((node) => probeOf(node) !== "tells").length;
  if (silent === 0) return null;
  const of = silent === up.length ? "No node" : `${up.length - silent} of ${up.length} nodes`;
  const verb = silent === up.length || up.length - silent === 1 ? "has" : "have";
  return `${of} ${verb} a probe that reports to this monitor. Of the others it does not know why links are there, message queues, registrations and traces, and finds nothing in them.`;
}
