// SPDX-License-Identifier: Apache-2.0
// Which findings a person has acknowledged, or muted for a while. A finding that ended and came back
// is a new one, except where it is muted.
import type { Finding } from "./protocol";

export type State = "open" | "acknowledged" | "muted";

/** By a finding's id: acknowledged, for the one that began then, or muted until then (Unix ms). */
export type Triage = Readonly<Record<string, { acknowledged: number } | { muted: number }>>;

/** For ever, as JSON can say it. */
export const FOR_GOOD = Number.MAX_SAFE_INTEGER;

export function stateOf(triage: Triage, finding: Finding, now: number): State {
  const said = Object.hasOwn(triage, finding.id) ? triage[finding.id] : undefined;
  if (said === undefined) return "open";
  if ("muted" in said) return now < said.muted ? "muted" : "open";
  return said.acknowledged === finding.since ? "acknowledged" : "open";
}

/** Findings that nobody has acknowledged or muted. */
export const open = (triage: Triage, findings: readonly Finding[], now: number): Finding[] =>
  findings.filter((finding) => stateOf(triage, finding, now) === "open");

/** A triage from stored text, without entries that are malformed. */
export function parseTriage(text: string | null): Triage {
  try {
    const all: unknown = JSON.parse(text ?? "{}");
    if (typeof all !== "object" || all === null) return {};
    const fine = (one: unknown): boolean => {
      const { muted, acknowledged } = (one ?? {}) as Record<string, unknown>;
      return typeof muted === "number" || typeof acknowledged === "number";
    };
    return Object.fromEntries(Object.entries(all).filter(([, one]) => fine(one))) as Triage;
  } catch {
    return {};
  }
}

/** Without what no longer says anything: mutes that are over, and more than so many of the oldest. */
export function pruned(triage: Triage, now: number, most = 1000): Triage {
  const kept = Object.entries(triage).filter(([, said]) => !("muted" in said) || now < said.muted);
  return Object.fromEntries(kept.slice(-most));
}
