// SPDX-License-Identifier: Apache-2.0
// Who sends how much to whom, over gateways too, and the report of the whole.
import { ask, type Part, type Sums } from "./answers";

/** What messages are counted by: processes, kinds of them, nodes. */
export type By = "process" | "kind" | "node";

/** A process, a kind of processes or a node that exchanges messages; `process` is 0 where it is not one. */
export interface End {
  key: string;
  name: string;
  entry: string;
  processes: number;
  process: number;
  node: number;
  sent: number;
  sent_bytes: number;
  received: number;
  received_bytes: number;
  /** With itself. */
  within: number;
  within_bytes: number;
}

/** From one end to another, by their keys. */
export interface MessageEdge {
  from: string;
  to: string;
  count: number;
  bytes: number;
}

export interface Amount {
  ends: number;
  edges: number;
  count: number;
  bytes: number;
}

export interface Communication {
  ends: End[];
  edges: MessageEdge[];
  /** What the filters leave, of which the edges are shown. */
  passed: Amount;
  all: Amount;
}

/** Whom it is asked about: the filters, and the end whose neighbours are shown, or an empty key. */
export interface Asked {
  by: By;
  sort: "count" | "bytes";
  least: number;
  mean: number;
  around: string;
}

/** By what the first processes are told, in the order of the page. */
export type Measure = Exclude<keyof Sums, "exiting">;

export interface Leader extends Sums {
  process: string;
  number: number;
  entry: string;
}

export interface Report {
  totals: Sums;
  processes: number;
  /** Of each point of the curves, nanoseconds. */
  width: number;
  top: Record<Measure, Leader[]>;
  concurrency: { from: number; running: number; runnable: number }[];
  /** By scheduler, where their sleep was recorded. */
  awake_ns: Record<string, number>;
}

export const getCommunication = (
  from: number,
  to: number,
  asked: Asked,
  most: { edges: number; ends: number },
) => ask<Communication>("/communication", { from, to, ...asked, ...most });

export const getReport = (top: number, parts: number) => ask<Report>("/report", { top, parts });

/** Messages over gateways; `at` is the node where it was so, null in a recording of one node. */
export interface Sent {
  at: string | null;
  /** The gateway to which they went first. */
  first: string;
  to: string;
  whom: string;
  count: number;
  bytes: number;
}

export interface Passed {
  at: string | null;
  from: string;
  next: string;
  count: number;
  bundles: number;
}

export interface Failure {
  at: string | null;
  to: string;
  whom: string;
  why: string;
  count: number;
}

export interface Routed {
  sent: { count: number; bytes: number; rows: Sent[] };
  gateways: { first: string; count: number; bytes: number }[];
  passed: { count: number; rows: Passed[] };
  delivered: number;
  undelivered: { count: number; rows: Failure[] };
}

export const getRouted = (part: Part, limit: number) => ask<Routed>("/routed", { ...part, limit });
