// SPDX-License-Identifier: Apache-2.0
// Words and ranges of a page of samples. Pure.
import { lasting, percent } from "../../lib/format";
import type { About, Mailbox, OverallColumn, Share } from "./answers";

/** Columns from `first` on, up to and without `after`. */
export interface Columns {
  readonly first: number;
  readonly after: number;
}

const hundred = (share: number): string => {
  const value = share * 100;
  return value === 0 || value >= 99.95 || value < 0.1
    ? percent(value).replace(" %", "")
    : value.toFixed(value < 9.95 ? 1 : 0);
};

/** "12 % (9.6 to 15)": a share and its interval. */
export const shareText = ({ share, low, high }: Share): string =>
  `${percent(share * 100)} (${hundred(low)} to ${hundred(high)})`;

/** The time at which a column begins, of `count` equal ones; the server cuts it likewise. */
export const columnAt = (column: number, count: number, duration: number): number =>
  Math.floor((duration * column) / Math.max(1, count));

/** At least one column, within the whole. */
export function clampColumns(first: number, after: number, count: number): Columns {
  const from = Math.min(Math.max(0, Math.round(first)), Math.max(0, count - 1));
  return {
    first: from,
    after: Math.min(Math.max(from + 1, Math.round(after)), Math.max(1, count)),
  };
}

/** Moves by its own length; the length stays. */
export function moved({ first, after }: Columns, by: 1 | -1, count: number): Columns {
  const length = after - first;
  const from = Math.min(Math.max(0, first + by * length), Math.max(0, count - length));
  return { first: from, after: from + length };
}

/** The columns of an address, or all. */
export function fromQuery(
  query: Readonly<Record<string, string>>,
  count: number,
  duration: number,
): Columns {
  const from = Number(query["from"]);
  const to = Number(query["to"]);
  if (query["from"] === undefined || !Number.isFinite(from) || !(to > from))
    return { first: 0, after: count };
  const column = (ns: number) => (ns * count) / Math.max(1, duration);
  return clampColumns(column(from), column(to), count);
}

/** What is asked of the server; nothing for all. */
export const partOf = (
  { first, after }: Columns,
  count: number,
  duration: number,
): { from: number; to: number } | null =>
  first === 0 && after >= count
    ? null
    : {
        from: columnAt(first, count, duration),
        to: Math.max(columnAt(first, count, duration) + 1, columnAt(after, count, duration)),
      };

export function rangeText(part: { from: number; to: number } | null, duration: number): string {
  return part === null
    ? `The whole time, ${lasting(duration)}`
    : `${lasting(part.from)} to ${lasting(part.to)} of ${lasting(duration)}`;
}

/** What keeps the shares from being as good as they could be. */
export function problems({ nodes }: About): string[] {
  const several = nodes.length > 1;
  return nodes.flatMap(({ node, rounds, counted_share: counted }) => {
    const of = several ? ` of ${node}` : "";
    return [
      ...(rounds < 2
        ? [
            `Not every process${of} was looked at: sample for longer (--seconds), or look more often (--rate).`,
          ]
        : []),
      ...(counted < 0.5
        ? [
            `${percent(counted * 100)} of the reductions${of} are those of processes that were looked at before and after: most of the work is that of processes that live for a short time, or are looked at seldom.`,
          ]
        : []),
    ];
  });
}

const STATES: Record<string, string> = {
  running: "runs",
  runnable: "waits for a scheduler",
  garbage_collecting: "collects garbage",
  waiting: "waits",
  suspended: "suspended",
  exiting: "exits",
};

export const stateText = (state: string): string => STATES[state] ?? state;

const THREADS: Record<string, string> = {
  normal: "processes",
  cpu: "dirty, computing",
  io: "dirty, input and output",
};

export const schedulerText = (type: string): string => THREADS[type] ?? type;

/** The first rows and how many there are. */
export const rowsText = (shown: number, all: number, what: string): string =>
  shown < all ? `The first ${shown} of ${all} ${what}.` : `${all} ${what}.`;

/** Memory by what it is for, which together is all of it. */
export function memoryOf(
  columns: readonly OverallColumn[],
): { key: string; label: string; values: (number | null)[] }[] {
  const of = (part: (memory: NonNullable<OverallColumn["memory"]>) => number) =>
    columns.map(({ memory }) => (memory === null ? null : part(memory)));
  return [
    { key: "processes", label: "processes", values: of(({ processes }) => processes) },
    { key: "binary", label: "binaries", values: of(({ binary }) => binary) },
    { key: "ets", label: "ETS tables", values: of(({ ets }) => ets) },
    {
      key: "others",
      label: "code and others",
      values: of(({ total, processes, binary, ets }) =>
        Math.max(0, total - processes - binary - ets),
      ),
    },
  ];
}

/** The name of a mailbox, with its node where there are several. */
export const boxLabel = ({ node, name }: Mailbox, several: boolean): string =>
  several ? `${name} at ${node}` : name;

/** The last two queues are those of dirty schedulers. */
const queueLabel = (i: number, count: number): string =>
  i < count - 2 || count < 3
    ? `queue ${i + 1}`
    : i === count - 2
      ? "dirty, computing"
      : "dirty, input and output";

/** The longest queues, in their order. */
export function longestQueues(
  queues: readonly (readonly (number | null)[])[],
  most: number,
): { key: string; label: string; values: readonly (number | null)[] }[] {
  const sum = (values: readonly (number | null)[]) =>
    values.reduce<number>((all, value) => all + (value ?? 0), 0);
  return queues
    .map((values, i) => ({ i, values, all: sum(values) }))
    .sort((a, b) => b.all - a.all || a.i - b.i)
    .slice(0, most)
    .sort((a, b) => a.i - b.i)
    .map(({ i, values }) => ({ key: String(i), label: queueLabel(i, queues.length), values }));
}
