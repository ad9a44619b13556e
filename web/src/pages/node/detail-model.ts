// SPDX-License-Identifier: Apache-2.0
// A node's detail as its page shows it. Nodes differ in what they tell: what is not there is null, never 0.
import type { Detail, SchedulerDetail } from "../../model/protocol";

export interface Limit {
  key: string;
  label: string;
  used: number | null;
  limit: number | null;
}

export interface Schedulers {
  all: SchedulerDetail[];
  /** Run queues of the dirty CPU and the dirty IO schedulers. */
  dirty: [number | null, number | null];
  /** Whether any utilisation is known. */
  measured: boolean;
}

const numeric = (value: unknown): number | null =>
  typeof value === "number" && Number.isFinite(value) ? value : null;

/**
 * Schedulers with their queues. `queues` has one for each normal scheduler, then dirty CPU, then dirty IO; where
 * no scheduler is described (utilisation was not measured) the queues make the ring alone.
 */
export function schedulersOf(detail: Detail): Schedulers {
  const queues = detail.queues ?? [];
  const told = detail.schedulers ?? [];
  const normal = told.filter((one) => one.type === "normal");
  const count = normal.length > 0 ? normal.length : Math.max(0, queues.length - 2);
  const ring: SchedulerDetail[] =
    normal.length > 0
      ? normal.map((one) => ({ ...one, queue: numeric(one.queue) ?? queues[one.id - 1] ?? null }))
      : queues
          .slice(0, count)
          .map((queue, i) => ({ id: i + 1, type: "normal", queue, util: null }));
  const others = told.filter((one) => one.type !== "normal");
  return {
    all: [...ring, ...others],
    dirty: [
      dirtyQueue(others, "dirty_cpu", queues[count]),
      dirtyQueue(others, "dirty_io", queues[count + 1]),
    ],
    measured: told.some((one) => numeric(one.util) !== null),
  };
}

function dirtyQueue(
  others: readonly SchedulerDetail[],
  type: string,
  told: number | undefined,
): number | null {
  const known = others.filter((one) => one.type === type).map((one) => numeric(one.queue));
  return numeric(told) ?? known.find((queue) => queue !== null) ?? null;
}

const LIMITS = [
  ["procs", "proc_limit", "Processes"],
  ["ports", "port_limit", "Ports"],
  ["atoms", "atom_limit", "Atoms"],
  ["ets", "ets_limit", "ETS tables"],
  ["files", "file_limit", "Files"],
  ["modules", "module_limit", "Modules"],
] as const;

/** What there is of each limited thing, and the limit. */
export function limitsOf(detail: Detail): Limit[] {
  const limits = (detail.limits ?? {}) as Record<string, unknown>;
  return LIMITS.map(([key, limitKey, label]) => {
    const value = limits[key];
    if (Array.isArray(value))
      return { key, label, used: numeric(value[0]), limit: numeric(value[1]) };
    if (typeof value === "object" && value !== null) {
      const pair = value as Record<string, unknown>;
      return {
        key,
        label,
        used: numeric(pair["used"] ?? pair["count"]),
        limit: numeric(pair["limit"]),
      };
    }
    return { key, label, used: numeric(value), limit: numeric(limits[limitKey]) };
  }).filter((one) => one.used !== null);
}

/** The kinds of memory that make up the total, in their order on the page. */
export const MEMORY_KINDS = [
  ["processes", "Processes"],
  ["binary", "Binaries"],
  ["ets", "ETS"],
  ["atom", "Atoms"],
  ["code", "Code"],
  ["system", "Other system"],
] as const;
export type MemoryKind = (typeof MEMORY_KINDS)[number][0];

/**
 * Bytes by kind. OTP's "system" contains binaries, ETS, atoms and code: what is left of it is the system's own,
 * so that the kinds add up to the total.
 */
export function memoryOf(memory: Readonly<Record<string, number>> | undefined): {
  total: number | null;
  kinds: Record<MemoryKind, number | null>;
} {
  const get = (kind: string): number | null => numeric(memory?.[kind] ?? memory?.[`mem_${kind}`]);
  const inSystem = (["binary", "ets", "atom", "code"] as const).map(get);
  const system = get("system");
  const rest =
    system === null
      ? null
      : Math.max(0, system - inSystem.reduce<number>((sum, one) => sum + (one ?? 0), 0));
  return {
    total: get("total"),
    kinds: {
      processes: get("processes"),
      binary: inSystem[0],
      ets: inSystem[1],
      atom: inSystem[2],
      code: inSystem[3],
      system: rest,
    },
  };
}
