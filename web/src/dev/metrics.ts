// SPDX-License-Identifier: Apache-2.0
// Made-up metrics: some of the monitoring's, and two of an application's own.
import type { Metric } from "../model/protocol";

const number = (name: string, unit: string, total: Metric["total"], about: string): Metric => ({
  name,
  unit,
  total,
  about,
  kind: "number",
  tags: [],
});

export const METRICS: readonly Metric[] = [
  number("util", "share", "mean", "Share of the time in which normal schedulers work"),
  number("mem", "B", "sum", "Memory that the run-time system has allocated"),
  number("out_msgs_s", "msg/s", "sum", "Messages to other nodes"),
  number("procs", "processes", "sum", "Processes"),
  {
    name: "orders",
    unit: "orders/s",
    total: "sum",
    about: "Orders that were paid",
    kind: "counter",
    tags: ["status"],
  },
  { name: "sessions", unit: "sessions", total: "sum", about: "", kind: "gauge", tags: [] },
];

/** The series of a metric. */
export const seriesOf = (name: string): string[] =>
  name === "orders"
    ? ["ok", "failed", "cancelled"].map((status) => `orders{status="${status}"}`)
    : [name];
