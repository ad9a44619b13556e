// SPDX-License-Identifier: Apache-2.0
// What /api/v1/samples answers, and how it is asked. Times are nanoseconds since the begin.
import { getJson } from "../../store/http";
import { recordedPath } from "../../ui/recorded";

export interface SampledNode {
  node: string;
  otp: string;
  duration: number;
  /** Wall clock, in milliseconds. */
  began: number;
  schedulers: number;
  looks: number;
  rounds: number;
  own_share: number;
  counted_share: number;
  processes: number;
  kinds: number;
}

export interface About {
  duration: number;
  nodes: SampledNode[];
}

/** With an interval of 95 %. */
export interface Share {
  share: number;
  low: number;
  high: number;
}

export interface Kind {
  group: string;
  seen: number;
  looks: number;
  reductions: number;
  of_reductions: number;
  processes: number;
  busy: number;
  /** Of all that ran or could have run. */
  share: Share;
  /** Of its own time. */
  share_busy: Share;
  queue: number;
  most_queue: number;
}

export interface Place {
  function: string;
  caller: string;
  looks: number;
  processes: number;
  share: Share;
  groups: string[];
}

export interface NodeRow {
  node: string;
  processes: number;
  busy: number;
  share_busy: Share;
  awake: number;
  queue: number;
  reductions_s: number;
}

export interface Column {
  at: number;
  running: number;
  runnable: number;
  collecting: number;
  queue: number;
  awake: number;
}

/** What nodes told of themselves; null where nothing was read. */
export interface OverallColumn {
  at: number;
  run_queue: number | null;
  most_run_queue: number | null;
  processes: number | null;
  memory: { total: number; processes: number; binary: number; ets: number } | null;
}

export interface Mailbox {
  node: string;
  name: string;
  mean: (number | null)[];
  most: number | null;
}

/** Columns as those of the curves; none of a file of an earlier version. */
export interface Overall {
  columns: OverallColumn[];
  mailboxes: Mailbox[];
  /** Of one node alone. */
  run_queues: (number | null)[][];
}

export interface Shares {
  duration: number;
  covers: { from: number; to: number };
  states: { state: string; looks: number; processes: number }[];
  kinds: Kind[];
  kinds_all: number;
  functions: Place[];
  functions_all: number;
  waits: Place[];
  waits_all: number;
  schedulers: { node: string; type: "normal" | "cpu" | "io"; number: number; awake: number }[];
  threads: { node: string; type: string; states: Record<string, number> }[];
  nodes: NodeRow[];
  curves: Column[];
  overall: Overall;
}

export interface Asked {
  /** Nothing for the whole. */
  part: { from: number; to: number } | null;
  node: string | null;
  kind: string | null;
}

export const getAbout = () => getJson<About>(recordedPath("samples"));

export const getShares = ({ part, node, kind }: Asked, limit: number) => {
  const fields = new URLSearchParams({ limit: String(limit) });
  if (part !== null) {
    fields.set("from", String(part.from));
    fields.set("to", String(part.to));
  }
  if (node !== null) fields.set("node", node);
  if (kind !== null) fields.set("kind", kind);
  return getJson<Shares>(`${recordedPath("samples")}/shares?${fields.toString()}`);
};
