// SPDX-License-Identifier: Apache-2.0
// Findings in the order in which one would act on them.
import type { Finding } from "./protocol";

export const RANK: Record<string, number> = { critical: 0, warning: 1, info: 2 };

/** Worst first, and among equals the newest first. */
export function inOrder(findings: readonly Finding[]): Finding[] {
  return [...findings].sort(
    (a, b) =>
      (RANK[a.severity] ?? 3) - (RANK[b.severity] ?? 3) ||
      b.since - a.since ||
      (a.id < b.id ? -1 : 1),
  );
}
