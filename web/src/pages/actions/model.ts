// SPDX-License-Identifier: Apache-2.0
// Actions and requests, as the server gives them. Pure.
import { bytes } from "../../lib/format";

export interface Param {
  name: string;
  about: string;
  required: boolean;
  default: unknown;
  type: "text" | "whole" | "flag" | "word";
  most?: number;
  min?: number;
  max?: number;
  words?: string[];
}

export interface Action {
  name: string;
  kind: "look" | "act" | "config" | "expression";
  role: Role;
  about: string;
  effect: string;
  params: Param[];
}

export type Role = "viewer" | "operator" | "admin";

export interface Catalogue {
  actions: Action[];
  role: Role;
}

export type Value = null | string | number | boolean | Value[] | { [key: string]: Value };

export interface NodeAnswer {
  state: "waiting" | "running" | "ok" | "failed" | "stopped";
  ms: number | null;
  error: string | null;
  result: Value;
  said_total: number;
  said: { at: number; pid: string; text: string }[];
}

interface Head {
  id: string;
  action: string;
  kind: Action["kind"];
  args: Record<string, Value>;
  on: Record<string, Value>;
  who: { name: string };
  at: number;
  ms: number | null;
  state: "running" | "done" | "stopped" | "unattended";
}

export interface Request extends Head {
  nodes: Record<string, NodeAnswer>;
}

export interface Listed extends Head {
  nodes: Record<string, number>;
}

const RANK: Record<Role, number> = { viewer: 1, operator: 2, admin: 3 };

export const allowed = (has: Role, action: Action): boolean => RANK[has] >= RANK[action.role];

export const KINDS: [Action["kind"], string][] = [
  ["look", "Look"],
  ["act", "Act"],
  ["config", "Configure"],
  ["expression", "Evaluate"],
];

/** garbage_collect and timeout_ms as people read them. */
export const title = (name: string): string =>
  (name.charAt(0).toUpperCase() + name.slice(1))
    .replace(/_(s|ms|mb)$/, (_, unit: string) => ` (${unit === "mb" ? "MB" : unit})`)
    .replaceAll("_", " ");

/** The arguments that a form has: what is left empty is left out. An error is a sentence. */
export function args(
  params: readonly Param[],
  given: Readonly<Record<string, string | boolean>>,
): { args: Record<string, Value> } | { wrong: string; name: string } {
  const found: Record<string, Value> = {};
  for (const param of params) {
    const value = given[param.name];
    if (param.type === "flag") {
      if (value === true) found[param.name] = true;
    } else if (typeof value !== "string" || value === "") {
      if (param.required) return { wrong: `${title(param.name)} is missing.`, name: param.name };
    } else if (param.type === "whole") {
      const number = Number(value);
      if (!Number.isInteger(number) || number < (param.min ?? 0) || number > (param.max ?? number))
        return {
          wrong: `${title(param.name)} is a whole number from ${param.min} to ${param.max}.`,
          name: param.name,
        };
      found[param.name] = number;
    } else found[param.name] = value;
  }
  return { args: found };
}

/** The lists of objects of an answer are tables, the rest are facts. */
export function parts(result: Value): {
  facts: [string, Value][];
  rows: [string, Record<string, Value>[]][];
} {
  if (result === null || typeof result !== "object" || Array.isArray(result))
    return { facts: result === null ? [] : [["result", result]], rows: [] };
  const facts: [string, Value][] = [];
  const rows: [string, Record<string, Value>[]][] = [];
  for (const [key, value] of Object.entries(result)) {
    if (Array.isArray(value) && value.length > 0 && value.every((one) => isObject(one)))
      rows.push([key, value as Record<string, Value>[]]);
    else facts.push([key, value]);
  }
  facts.sort(([a], [b]) => inOrder(a, b));
  return { facts, rows };
}

const isObject = (value: Value): boolean =>
  value !== null && typeof value === "object" && !Array.isArray(value);

const FIRST = [
  "pid",
  "port",
  "name",
  "table",
  "application",
  "parameter",
  "change",
  "before",
  "now",
  "after",
];

/** What it is first, then by name. */
function inOrder(a: string, b: string): number {
  const rank = (key: string) => (FIRST.includes(key) ? FIRST.indexOf(key) : FIRST.length);
  return rank(a) - rank(b) || (a < b ? -1 : 1);
}

/** The columns of rows. */
export const columns = (rows: readonly Record<string, Value>[]): string[] =>
  [...new Set(rows.flatMap((row) => Object.keys(row)))].sort(inOrder);

/** A value in a cell. */
export function shown(key: string, value: Value): string {
  if (value === null || value === "") return "–";
  if (typeof value === "number" && BYTES.has(key)) return bytes(value);
  if (typeof value === "number") return value.toLocaleString("en");
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (Array.isArray(value)) return value.map((one) => shown("", one)).join(", ") || "none";
  return typeof value === "string" ? value : JSON.stringify(value);
}

const BYTES = new Set(["memory", "heap_bytes", "input", "output", "queue_size"]);

/** What a person does next with a row: the action and its arguments. */
export function next(key: string, row: Record<string, Value>): [string, string, string] | null {
  const text = (name: string) => (typeof row[name] === "string" ? row[name] : null);
  if (key === "processes" && text("pid")) return ["process", "pid", text("pid") ?? ""];
  if (key === "tables" && text("table")) return ["table_rows", "table", text("table") ?? ""];
  if (key === "applications" && text("application"))
    return ["environment", "application", text("application") ?? ""];
  if (key === "ports" && text("owner")) return ["process", "pid", text("owner") ?? ""];
  if (key === "changes" && text("change"))
    return ["undo_environment", "change", text("change") ?? ""];
  return null;
}
