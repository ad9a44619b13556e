// SPDX-License-Identifier: Apache-2.0
// Findings in the order in which one would act on them.
import type { Finding, Severity } from "../store/protocol";

export type Shown = Severity | "all";

const RANK: Record<string, number> = { critical: 0, warning: 1, info: 2 };

/** Worst first, and among equals the newest first. */
export function inOrder(findings: readonly Finding[]): Finding[] {
  return [...findings].sort(
    (a, b) =>
      (RANK[a.severity] ?? 3) - (RANK[b.severity] ?? 3) || b.since - a.since || (a.id < b.id ? -1 : 1),
  );
}

export const wanted = (findings: readonly Finding[], shown: Shown): readonly Finding[] =>
  shown === "all" ? findings : findings.filter((finding) => finding.severity === shown);

/** "2 critical, 1 warning". */
export function counted(findings: readonly Finding[]): string {
  if (findings.length === 0) return "None at this time.";
  return Object.keys(RANK)
    .map(
      (severity) => [severity, findings.filter((finding) => finding.severity === severity).length] as const,
    )
    .filter(([, n]) => n > 0)
    .map(([severity, n]) => `${n} ${severity}`)
    .join(", ");
}

/** What is looked for; said where nothing was found. */
export const CHECKS: readonly (readonly [string, string])[] = [
  ["Traffic past the gateways", "between nodes of groups that share none"],
  ["Links nobody needs", "up, without a reason and without traffic"],
  ["Gateways near saturation", "by run queue, utilisation and bytes that wait"],
  ["Nodes in the wrong group", "whose traffic goes to another group's members, with what a move would save"],
  ["Groups too large", "for the rate at which names are registered in them"],
  ["Hot names", "that draw much of the traffic to one process"],
  ["Nodes that are not converged", "that see other members than the rest, and why"],
];
