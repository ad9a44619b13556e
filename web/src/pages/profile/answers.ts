// SPDX-License-Identifier: Apache-2.0
// What /api/v1/profile answers, and how it is asked. Times are nanoseconds since the begin.
import { getJson } from "../../store/http";

export interface Sums {
  run: number;
  runnable: number;
  wait: number;
  gc: number;
  exiting: number;
  ins: number;
  sent: number;
  sent_bytes: number;
  received: number;
  received_bytes: number;
  moves: number;
}

export interface About {
  node: string;
  otp: string | null;
  items: string[];
  events: number;
  duration: number;
  processes: number;
  /** Schedulers of the node. */
  online: number | null;
  /** Those whose sleep was recorded. */
  schedulers: number[];
  totals: Sums;
  problems: string[];
  dropped: number;
  lost_events: number;
  lost_bytes: number;
  runnable: "recorded" | "messages" | "none";
  has_messages: boolean;
  has_calls: boolean;
  limits: { columns: number; processes: number; cells: number };
}

/** What (0 running, 1 runnable, 2 waiting, 3 gc, 4 exiting), when, how long, the place, and who ended it. */
export type Interval = [what: number, from: number, ns: number, site: number, waker: number];

/** Shares are per mille of a column. */
export interface Lane {
  process: number;
  running: number[];
  runnable: number[];
  waiting: number[];
  gc: number[];
  intervals: Interval[] | null;
}

export interface Window {
  from: number;
  width: number;
  columns: number;
  exact: boolean;
  running: number[];
  runnable: number[];
  schedulers: { scheduler: number; awake: number[] }[];
  lanes: Lane[];
  sites: Record<string, string>;
  names: Record<string, string>;
}

export interface Process extends Sums {
  process: number;
  name: string;
  entry: string;
  parent: number;
  parent_name: string;
  start: number | null;
  stop: number | null;
  reason: string;
}

export interface Peer {
  process: number;
  name: string;
  count: number;
  sum: number;
}

export interface Wait {
  site: string;
  count: number;
  sum: number;
  mean: number;
  deviation: number;
}

export interface Details {
  process: Process;
  waits: Wait[];
  waits_for: Peer[];
  waited_for_by: Peer[];
  sent_to: Peer[];
  received_from: Peer[];
}

export interface Pair {
  from: number;
  from_name: string;
  to: number;
  to_name: string;
  count: number;
  bytes: number;
}

export interface Messages {
  pairs: number;
  count: number;
  bytes: number;
  rows: Pair[];
}

export interface Frame {
  function: string;
  ns: number;
  below: Frame[];
}

export interface Calls {
  ns: number;
  frames: Frame[];
}

const ask = <T>(path: string, query: Record<string, string | number> = {}): Promise<T> => {
  const fields = Object.entries(query)
    .map(([key, value]) => `${key}=${encodeURIComponent(value).replaceAll("%2C", ",")}`)
    .join("&");
  return getJson<T>(`api/v1/profile${path}${fields === "" ? "" : `?${fields}`}`);
};

export const getAbout = () => ask<About>("");
export const getDetails = (process: number) => ask<Details>(`/processes/${process}`);
export const getCalls = () => ask<Calls>("/calls");

export const getWindow = (from: number, to: number, columns: number, processes: number[]) =>
  ask<Window>("/window", {
    from,
    to,
    columns,
    ...(processes.length === 0 ? {} : { processes: processes.join(",") }),
  });

export const getProcesses = (sort: string, search: string, limit: number) =>
  ask<{ processes: Process[]; matching: number }>("/processes", { sort, search, limit });

export const getNumbered = (processes: number[]) =>
  ask<{ processes: Process[] }>("/processes", { processes: processes.join(",") });

export const getMessages = (from: number, to: number, limit: number) =>
  ask<Messages>("/messages", { from, to, limit });
