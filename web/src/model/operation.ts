// SPDX-License-Identifier: Apache-2.0
// What the pages of operations make of the answer of the service.
import type { Instance, OperationStatus } from "./protocol";
import { count } from "../lib/format";

/** The state in words, for a person. */
export function stateWords({ state, progress }: OperationStatus): string {
  switch (state) {
    case "steady":
      return "All is as the file says.";
    case "working":
      return progress === null
        ? "Nodes and groups are being looked at."
        : `${count(progress.done)} of ${count(progress.total)} steps are done.`;
    case "paused":
      return "Paused: nothing is begun until `bin/sderl ops resume`.";
    case "failed":
      return "Not all is as the file says.";
    case "destroyed":
      return "Nothing of the cluster is left.";
  }
}

/** The steps that are left and not under way, and what the service waits for: each step is in one of the lists. */
export function behind(
  doing: readonly string[],
  steps: readonly string[],
  waiting: readonly string[],
): { left: string[]; waiting: string[] } {
  const underWay = new Set(doing);
  return {
    left: steps.filter((step) => !underWay.has(step)),
    waiting: waiting.filter((one) => !doing.some((step) => one === `${step}: being done`)),
  };
}

export interface FamilyRow {
  name: string;
  instances: Instance[];
  /** How many serve, as the service started them or as they were found. */
  up: number;
  /** Each state with how many are in it, the ones that serve last. */
  states: [state: string, n: number][];
  releases: string[];
  hosts: number;
}

const SERVES: ReadonlySet<string> = new Set(["up", "adopted"]);
/** States of instances that do not serve, and are not meant to. */
const LEFT: ReadonlySet<string> = new Set(["drained", "released", "leaving"]);

export const serves = (state: string): boolean => SERVES.has(state);

/** How a state looks to a person who glances: well, put aside on purpose, or to be looked at. */
export const look = (state: string): "well" | "aside" | "amiss" =>
  serves(state) ? "well" : LEFT.has(state) ? "aside" : "amiss";

/** A family has no digit at the end of its name, and its instances have a number there. */
export const familyOf = (id: string): string => id.replace(/[0-9]+$/, "");

export function families(instances: readonly Instance[]): FamilyRow[] {
  const byName = new Map<string, Instance[]>();
  for (const instance of instances) {
    const name = familyOf(instance.id);
    const known = byName.get(name);
    if (known) known.push(instance);
    else byName.set(name, [instance]);
  }
  return [...byName].map(([name, all]) => {
    const counts = new Map<string, number>();
    for (const { state } of all) counts.set(state, (counts.get(state) ?? 0) + 1);
    return {
      name,
      instances: all,
      up: all.filter(({ state }) => serves(state)).length,
      states: [...counts].toSorted(
        ([a, n], [b, m]) => Number(serves(a)) - Number(serves(b)) || m - n,
      ),
      releases: [...new Set(all.map(({ release }) => release ?? "–"))].toSorted(),
      hosts: new Set(all.flatMap(({ host }) => host ?? [])).size,
    };
  });
}
