// SPDX-License-Identifier: Apache-2.0
// Entries of the audit log, as the server gives them. Pure.
import { sentence } from "../../lib/format";

export interface Entry {
  seq: number;
  at: string;
  request: string;
  who: { name: string; kind: string; token?: string; role?: string; from?: string };
  what: string;
  where: string[];
  where_total?: number;
  args: unknown;
  result: string;
  detail: string;
  ms: number | null;
}

export interface Found {
  entries: Entry[];
  more: boolean;
  damaged: number;
  oldest: number | null;
  lost: number;
  waiting: number;
  problem: string | null;
  /** Why only what is in memory is here. */
  unread: string | null;
}

export const RESULTS = ["begun", "ok", "partly", "failed", "refused", "stopped"];

export const address = (fields: Record<string, string>): string =>
  `api/v1/audit?${new URLSearchParams(fields)}`;

/** What was done, with its arguments, and what came of it. */
export function words({ what, args, detail }: Entry): string {
  const some =
    args !== null && typeof args === "object" && !Array.isArray(args)
      ? Object.entries(args).map(
          ([key, value]) => `${key}=${typeof value === "string" ? value : JSON.stringify(value)}`,
        )
      : [];
  return [what.replace(/^action\./, ""), ...some, detail === "" ? "" : `(${detail})`]
    .filter((one) => one !== "")
    .join(" ");
}

/** A token, its role and where it came from. */
export const who = ({ who: one }: Entry): string =>
  [
    one.name,
    one.role ? `as ${one.role}` : "",
    one.token ? `with the token ${one.token}` : "",
    one.from ? `from ${one.from}` : "",
  ]
    .filter((part) => part !== "")
    .join(" ");

export function where({ where: nodes, where_total: total }: Entry): string {
  const [first, ...rest] = nodes;
  const more = (total ?? nodes.length) - 1;
  if (first === undefined) return "";
  return rest.length === 0 && more <= 0 ? first : `${first} and ${more} more`;
}

/** What the log lacks, in words; nothing where it lacks nothing. */
export function lacks({ lost, waiting, damaged, problem, unread }: Found): string {
  return [
    unread === null ? "" : sentence(unread),
    problem === null ? "" : `The log cannot be written: ${problem}.`,
    counted(waiting, "entry waits", "entries wait", "in memory."),
    counted(lost, "entry was", "entries were", "lost since this monitoring node began."),
    counted(damaged, "line of its files is no entry.", "lines of its files are no entries.", ""),
  ]
    .filter((one) => one !== "")
    .join(" ");
}

const counted = (n: number, one: string, many: string, rest: string): string =>
  n === 0 ? "" : `${n} ${n === 1 ? one : many} ${rest}`.trimEnd();
