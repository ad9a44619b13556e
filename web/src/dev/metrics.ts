// SPDX-License-Identifier: Apache-2.0
// Made-up metrics: some of the monitoring's, and two of an application's own.
import type { Metric } from "../model/protocol";

const number = (
  name: string,
  unit: string,
  total: Metric["total"],
  about: string,
  tag = "",
): Metric => ({
  name,
  unit,
  total,
  about,
  kind: "number",
  tags: [],
  for: tag === "" ? ["dev", "op"] : [tag],
});

export const METRICS: readonly Metric[] = [
  number("util", "share", "mean", "Share of the time in which normal schedulers work"),
  number("mem", "B", "sum", "Memory that the run-time system has allocated"),
  number("out_msgs_s", "msg/s", "sum", "Messages to other nodes"),
  number("procs", "processes", "sum", "Processes"),
  number("gc_s", "collections/s", "sum", "Garbage collections", "dev"),
  {
    name: "orders",
    unit: "orders/s",
    total: "sum",
    about: "Orders that were paid",
    kind: "counter",
    tags: ["status"],
    for: ["shop"],
  },
  { name: "sessions", unit: "sessions", total: "sum", about: "", kind: "gauge", tags: [], for: [] },
];

/** The series of a metric. */
export const seriesOf = (name: string): string[] =>
  name === "orders"
    ? ["ok", "failed", "cancelled"].map((status) => `orders{status="${status}"}`)
    : [name];
