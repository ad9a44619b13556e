// SPDX-License-Identifier: Apache-2.0
// The report of the whole: its lists, and how long their bars are. Pure.
import { bytes, count, lasting, number } from "../../../lib/format";
import type { About, Sums } from "../answers";
import type { Leader, Measure, Report } from "../sums-answers";

/** Rows that a list may have. */
export const TOPS = [5, 10, 20, 50] as const;
export type Top = (typeof TOPS)[number];
export const FEW: Top = 10;

export interface List {
  measure: Measure;
  title: string;
  /** The item of a recording that has it. */
  item: string;
  show: (sums: Sums) => string;
}

const time =
  (measure: Measure) =>
  (sums: Sums): string =>
    lasting(sums[measure]);

const amount =
  (measure: Measure) =>
  (sums: Sums): string =>
    count(sums[measure]);

const size = (measure: "received" | "sent") => (sums: Sums) =>
  `${bytes(sums[`${measure}_bytes`])}, ${bytes(sums[`${measure}_bytes`] / Math.max(1, sums[measure]))} each`;

/** In the order of the page. */
export const LISTS: readonly List[] = [
  { measure: "run", title: "Runs longest", item: "running", show: time("run") },
  { measure: "wait", title: "Waits longest", item: "running", show: time("wait") },
  {
    measure: "runnable",
    title: "Waits for a scheduler longest",
    item: "running",
    show: time("runnable"),
  },
  {
    measure: "gc",
    title: "Collects garbage longest",
    item: "garbage_collection",
    show: time("gc"),
  },
  {
    measure: "received",
    title: "Receives most messages",
    item: "message",
    show: amount("received"),
  },
  { measure: "sent", title: "Sends most messages", item: "message", show: amount("sent") },
  {
    measure: "received_bytes",
    title: "Receives most bytes",
    item: "message",
    show: size("received"),
  },
  { measure: "sent_bytes", title: "Sends most bytes", item: "message", show: size("sent") },
  {
    measure: "moves",
    title: "Changes the scheduler most often",
    item: "migration",
    show: amount("moves"),
  },
  { measure: "ins", title: "Is scheduled in most often", item: "running", show: amount("ins") },
];

/** Those with rows, and the titles of the others with the item that a recording of them needs. */
export function lists({ top }: Pick<Report, "top">): { shown: List[]; empty: List[] } {
  const has = ({ measure }: List) => top[measure].length > 0;
  return { shown: LISTS.filter(has), empty: LISTS.filter((list) => !has(list)) };
}

/** Whether it was recorded when processes run; where the items are not known, by what there is. */
export const hasRun = ({ items, totals }: Pick<About, "items" | "totals">): boolean =>
  items.length === 0 ? totals.run > 0 : items.includes("running") || items.includes("migration");

/** Whether it is known, too, when they could run. */
export const hasRunnable = (about: Pick<About, "items" | "totals" | "runnable">): boolean =>
  about.runnable !== "none" && hasRun(about);

/** Each row's part of the first one. */
export const barOf = (row: Leader, rows: readonly Leader[], measure: Measure): number =>
  row[measure] / Math.max(1, ...rows.map((one) => one[measure]));

/** What a process did, as parts of the whole recording. */
export function activity(
  sums: Sums,
  duration: number,
): { kind: "running" | "runnable" | "waiting"; share: number }[] {
  const all = Math.max(1, duration, sums.run + sums.runnable + sums.wait);
  return (
    [
      ["running", sums.run],
      ["runnable", sums.runnable],
      ["waiting", sums.wait],
    ] as const
  )
    .map(([kind, ns]) => ({ kind, share: ns / all }))
    .filter(({ share }) => share > 0);
}

export const activityText = ({ run, runnable, wait }: Sums, isRunnableKnown = true): string =>
  [
    `runs ${lasting(run)}`,
    ...(isRunnableKnown ? [`waits for a scheduler ${lasting(runnable)}`] : []),
    `waits ${lasting(wait)}`,
  ].join(", ");

/** The part of the schedulers' time in which processes ran; null where their number is not known. */
export const utilisation = (
  { totals }: Pick<Report, "totals">,
  { online, duration }: Pick<About, "online" | "duration">,
): number | null =>
  online === null || online === 0 ? null : totals.run / (online * Math.max(1, duration));

/** How long each scheduler was awake, as a part of the whole, in their order. */
export const awake = (
  { awake_ns: of }: Pick<Report, "awake_ns">,
  duration: number,
): { scheduler: number; share: number }[] =>
  Object.entries(of)
    .map(([scheduler, ns]) => ({
      scheduler: Number(scheduler),
      share: Math.min(1, ns / Math.max(1, duration)),
    }))
    .sort((a, b) => a.scheduler - b.scheduler);

/** Times of the curve, and how many processes run and could run then. */
export function curve({ concurrency, width }: Pick<Report, "concurrency" | "width">): {
  t: number[];
  running: number[];
  runnable: number[];
} {
  return {
    t: concurrency.map(({ from }) => from + width / 2),
    running: concurrency.map(({ running }) => running),
    runnable: concurrency.map(({ runnable }) => runnable),
  };
}

/** The curve for those who hear it. */
export function curveText(
  report: Pick<Report, "concurrency" | "totals">,
  { online, duration, runnable: known }: Pick<About, "online" | "duration" | "runnable">,
): string {
  const { concurrency, totals } = report;
  const mean = (ns: number) => number(ns / Math.max(1, duration));
  const most = Math.max(0, ...concurrency.map(({ running, runnable }) => running + runnable));
  const of = online === null ? "" : ` on ${count(online)} schedulers`;
  if (known === "none")
    return `On average ${mean(totals.run)} processes run${of}; at most ${number(most)} run`;
  return `On average ${mean(totals.run)} processes run and ${mean(totals.runnable)} wait for a scheduler${of}; at most ${number(most)} run or wait for one`;
}
