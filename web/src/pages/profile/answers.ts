// SPDX-License-Identifier: Apache-2.0
// What /api/v1/profile answers, and how it is asked. Times are nanoseconds since the begin.
import { getJson } from "../../store/http";
import { recordedPath } from "../../ui/recorded";

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

/** One of several nodes: its processes are those from `first` to `last`, its schedulers those after `scheduler`. */
export interface Node {
  number: number;
  node: string;
  first: number;
  last: number;
  scheduler: number;
  online: number | null;
  from: number;
  to: number;
  error: number;
  shift: number;
  groups: string[];
}

export interface About {
  node: string;
  otp: string | null;
  items: string[];
  events: number;
  duration: number;
  processes: number;
  /** The number of schedulers. */
  online: number | null;
  /** The schedulers whose sleep was recorded. */
  schedulers: number[];
  totals: Sums;
  problems: string[];
  dropped: number;
  lost_events: number;
  lost_bytes: number;
  runnable: "recorded" | "messages" | "none";
  has_messages: boolean;
  has_calls: boolean;
  has_ports: boolean;
  has_path: boolean;
  /** The number of findings. */
  findings: number;
  /** None where one node was recorded. */
  nodes: Node[];
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
  /** The same for each of several nodes. */
  nodes: { node: number; running: number[]; runnable: number[] }[];
  lanes: Lane[];
  sites: Record<string, string>;
  names: Record<string, string>;
}

export interface Process extends Sums {
  process: number;
  kind: "process" | "port" | "name" | "remote" | "node" | "alias";
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
  /** The number of the place, 0 where none is known. */
  function: number;
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

/** What two nodes sent each other in the whole run, and how long those took of which both ends are known. */
export interface Link {
  from: string;
  to: string;
  sent: number;
  sent_bytes: number;
  received: number;
  joined: number;
  mean_ns: number | null;
  least_ns: number | null;
  most_ns: number | null;
  error_ns: number | null;
  common_group: boolean | null;
}

export interface Traffic {
  /** By the numbers of nodes. */
  sent: { from: number; to: number; count: number; bytes: number }[];
  whole: Link[];
}

export interface Frame {
  function: string;
  ns: number;
  below: Frame[];
}

/** Of the part that was asked for, or of the whole where that has too many events. */
export type Of = "part" | "whole";

/** How often it was called, its own time, and its time with what it calls. */
export interface Called {
  calls: number;
  own: number;
  all: number;
}

export interface Func extends Called {
  function: number;
  name: string;
  /** In all of the recording; null where that is the same, or not known. */
  whole: Called | null;
}

/** A caller (0 where it is not known), whom it calls, how often, and the time that the called one has from it. */
export type Edge = [caller: number, callee: number, calls: number, ns: number];

export interface CallGraph {
  /** The longest first. */
  functions: Func[];
  edges: Edge[];
  /** Of those at the ends of edges that are not among the functions. */
  names: Record<string, string>;
  functions_left: number;
  edges_left: number;
}

export interface Calls {
  of: Of;
  /** The process whose calls they are; null for those of all. */
  whose: string | null;
  ns: number;
  frames: Frame[];
  graph: CallGraph;
}

/** Lines from the number `first` on; `line` to `last` are the function, where they are known. */
export interface Source {
  function: string;
  file: string | null;
  first: number;
  lines: string[];
  line: number | null;
  last: number | null;
  version: "same" | "some" | "other" | "unknown";
  /** Why there are no lines. */
  why: string | null;
  note: string | null;
}

export interface Place extends Wait {
  processes: number;
  /** Those that wait there longest. */
  waiters: Peer[];
  wakers: number;
  waits_for: Peer[];
}

export interface Places {
  of: Of;
  whose: string | null;
  places: number;
  count: number;
  sum: number;
  rows: Place[];
}

/** A process, or siblings that are alike and left out, which have the process 0. */
export interface Branch extends Process {
  depth: number;
  omitted: number;
}

export interface Tree {
  rows: Branch[];
  all: number;
  /** Processes whose parents are among those left out. */
  below: number;
}

/** When it was sent and taken over, from whom, to whom, its bytes. */
export type Arrow = [
  sent: number,
  received: number | null,
  from: number,
  to: number,
  bytes: number,
];

export interface Arrows {
  arrows: Arrow[];
  count: number;
  /** Messages of the chosen process whose other end has no lane. */
  elsewhere: number;
}

/** A scheduler, from when, until when, how often in there, how long it ran. */
export type Stay = [number, number, number, number, number];

export interface Stays {
  schedulers: { scheduler: number; stays: number; ins: number; ran: number }[];
  /** The longest, in the order of time. */
  stays: Stay[];
  count: number;
}

/** An operation on groups. What is null is not known, or the operation has none of it. */
export interface Operation {
  process: number;
  /** The process that called it, and its node. */
  by: string;
  node: string;
  /** Such as `s_group:add_nodes/2`. */
  operation: string;
  at: number;
  took: number | null;
  /** Whether it did what was asked. */
  ok: boolean | null;
  /** What it gave. */
  text: string;
  arguments: string;
  group: string | null;
  /** A null at the end: there are more than are kept. */
  nodes: (string | null)[] | null;
  name: string | null;
  of_process: string | null;
  got_group: string | null;
  got_nodes: (string | null)[] | null;
}

/** How many begin in one of the equal parts: on all of a node (process 0), or by a process; node 0 where there is one. */
export type Cell = [part: number, node: number, process: number, count: number];

export interface Operations {
  /** In the whole recording; the first `kept` of them are known. */
  all: number;
  kept: number;
  /** In the part that was asked for; `rows` has the first of them. */
  count: number;
  parts: number;
  rows: Operation[];
  /** None where `rows` has all of them. */
  cells: Cell[];
}

export interface Finding {
  finding: string;
  process: string | null;
  weight: number;
  text: string;
  remedy: string;
  threshold: string;
  numbers: number[];
  ranges: { from: number; to: number }[];
  evidence: Record<string, unknown>;
}

export interface Findings {
  found: Finding[];
  not_shown: { finding: string; needs: string }[];
}

export type StepKind = "running" | "runnable" | "waiting" | "message" | "between";

export interface Segment {
  kind: StepKind;
  process: string;
  number: number;
  from: number;
  to: number;
  function: string | null;
  sender: string | null;
  sender_number: number | null;
}

export interface OnPath {
  process: string;
  number: number;
  entry: string;
  times: Record<StepKind, number>;
  ns: number;
  share: number;
  gain_ns: number;
}

export interface Path {
  /** Where nobody chose a process, the one of several nodes to which it leads. */
  leads_to: string | null;
  from: number;
  to: number;
  steps: number;
  kinds: Record<StepKind, number>;
  processes: OnPath[];
  others: { processes: number; ns: number };
  /** None where one node was recorded. */
  nodes: { node: string; times: Record<StepKind, number>; ns: number; share: number }[];
  gain: { speedup_of_schedulers: number; more_schedulers_ns: number };
  /** The longest ones, the earliest first. */
  segments: Segment[];
}

export const ask = <T>(path: string, query: Record<string, string | number> = {}): Promise<T> => {
  const fields = Object.entries(query)
    .map(([key, value]) => `${key}=${encodeURIComponent(value).replaceAll("%2C", ",")}`)
    .join("&");
  return getJson<T>(`${recordedPath("profile")}${path}${fields === "" ? "" : `?${fields}`}`);
};

export const getAbout = () => ask<About>("");
export const getDetails = (process: number) => ask<Details>(`/processes/${process}`);
export const getFindings = () => ask<Findings>("/findings");
export const getTree = (limit: number) => ask<Tree>("/tree", { limit });

/** The whole is answered without looking at its events. */
export type Part = { from: number; to: number } | null;

const ofProcess = (process: number | null): Record<string, number> =>
  process === null ? {} : { process };

export const getCalls = (part: Part, process: number | null) =>
  ask<Calls>("/calls", { ...part, ...ofProcess(process) });

export const getSource = (function_: number) => ask<Source>(`/functions/${function_}/source`);

export const getPlaces = (part: Part, process: number | null, sort: string, limit: number) =>
  ask<Places>("/waits", { ...part, ...ofProcess(process), sort, limit });

export const getPath = (part: Part, process: number | null, segments: number) =>
  ask<{ path: Path | null }>("/path", {
    ...part,
    segments,
    ...(process === null ? {} : { process }),
  });

export const getArrows = (
  part: { from: number; to: number },
  processes: number[],
  process: number | null,
  limit: number,
) =>
  ask<Arrows>("/arrows", {
    ...part,
    limit,
    processes: processes.join(","),
    ...(process === null ? {} : { process }),
  });

export const getStays = (process: number, from: number, to: number, limit: number) =>
  ask<Stays>("/stays", { process, from, to, limit });

export const getOperations = (
  part: { from: number; to: number } | null,
  processes: number[],
  limit: number,
) =>
  ask<Operations>("/operations", {
    ...part,
    limit,
    ...(processes.length === 0 ? {} : { processes: processes.join(",") }),
  });

export const getWindow = (from: number, to: number, columns: number, processes: number[]) =>
  ask<Window>("/window", {
    from,
    to,
    columns,
    ...(processes.length === 0 ? {} : { processes: processes.join(",") }),
  });

export const getProcesses = (
  sort: string,
  search: string,
  limit: number,
  kind: "all" | "process" | "port" = "all",
  part: Part = null,
) =>
  ask<{ processes: Process[]; matching: number; of: Of }>("/processes", {
    sort,
    search,
    limit,
    kind,
    ...part,
  });

export const getNumbered = (processes: number[]) =>
  ask<{ processes: Process[] }>("/processes", { processes: processes.join(",") });

export const getTraffic = (from: number, to: number) => ask<Traffic>("/traffic", { from, to });
