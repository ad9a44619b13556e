// SPDX-License-Identifier: Apache-2.0
// Findings in words: what kind they are, and their evidence as names and values. Pure.
import { count, number, share } from "../../../lib/format";
import { lasting } from "../range";

const KINDS: Record<string, string> = {
  bottleneck: "waiting for one",
  low_parallelism: "one at a time",
  mailbox: "mailbox that grows",
  long_gc: "garbage collection",
  migration: "busy migration",
  sleeping: "schedulers asleep",
  busy_port: "busy port",
  tables: "tables",
  past_gateways: "past the gateways",
};

export const kindText = (kind: string): string => KINDS[kind] ?? kind.replaceAll("_", " ");

/** Begins as a sentence does, but for a name of a process. */
export const sentence = (text: string): string =>
  /^(in|to|garbage|processes|functions) /.test(text)
    ? text.slice(0, 1).toUpperCase() + text.slice(1)
    : text;

const NAMES: Record<string, string> = {
  waiters: "processes that wait for it",
  times: "times",
  waited_ns: "waited in all",
  held_ns: "works meanwhile",
  at_a_time: "wait at a time",
  alone_ns: "only one could run",
  idle_ns: "nothing could run",
  peak: "messages at most",
  at: "at",
  left: "messages at the end",
  gc_ns: "collections in all",
  run_ns: "running in all",
  longest_ns: "longest collection",
  moves: "changes of the scheduler",
  ins: "times scheduled in",
  asleep_ns: "a scheduler slept meanwhile",
  busy_ns: "works or waits for a scheduler",
  tables_ns: "in functions of ets",
};

type Row = [name: string, value: string];
type One = Record<string, unknown>;

/** Lists of processes come behind the numbers; the longest times stand elsewhere, to be chosen. */
export function evidenceRows(evidence: Readonly<Record<string, unknown>>): Row[] {
  const numbers: Row[] = [];
  const lists: Row[] = [];
  for (const [key, value] of Object.entries(evidence)) {
    if (key === "longest") continue;
    if (Array.isArray(value)) lists.push(...value.map((one) => ofProcess(one as One)));
    else if (typeof value === "number")
      numbers.push([NAMES[key] ?? key.replaceAll("_", " "), amount(key, value)]);
  }
  return [...numbers.sort(([a], [b]) => a.localeCompare(b)), ...lists];
}

const amount = (key: string, value: number): string => {
  if (key.endsWith("_ns") || key === "at") return lasting(value);
  return Number.isInteger(value) ? count(value) : number(value);
};

function ofProcess(one: One): Row {
  const { process, ...facts } = one;
  const is = (key: string): number | null =>
    typeof facts[key] === "number" ? (facts[key] as number) : null;
  const words: string[] = [];
  const [alone, waiting] = [is("share"), is("waiting")];
  if (alone !== null) words.push(`${share(alone)} of the time alone`);
  if (waiting !== null && waiting >= 0.05) words.push(`${number(waiting)} wait for it`);
  const [gc, run, moves, ins] = [is("gc_ns"), is("run_ns"), is("moves"), is("ins")];
  const [sent, bytes] = [is("messages"), is("bytes")];
  if (sent !== null) words.push(`${count(sent)} messages`);
  if (bytes !== null && bytes > 0) words.push(`${count(bytes)} bytes`);
  if (gc !== null) words.push(`${lasting(gc)} of collections`);
  if (run !== null) words.push(`runs ${lasting(run)}`);
  if (moves !== null && ins !== null) words.push(`${count(moves)} of ${count(ins)} times`);
  const [own, calls] = [is("own_ns"), is("calls")];
  if (own !== null) words.push(lasting(own));
  if (calls !== null) words.push(`${count(calls)} calls`);
  return [String(process), words.join(", ")];
}
