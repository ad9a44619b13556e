// SPDX-License-Identifier: Apache-2.0
// What traffic is asked by, and what a row's series is called.
import type { SeriesOf, TrafficRow } from "../../model/protocol";

export const BY = [
  ["link", "Link", "From node to node, counted by the sender's distribution."],
  [
    "edge",
    "Group edge",
    "From group to group, between nodes that share none; in equal parts where a node is in several.",
  ],
  [
    "gateway",
    "Gateway",
    "Nodes in several groups: all that they send and receive, and of that what they only passed on for others.",
  ],
  ["group", "Group", "Between members of one group; in equal parts where they share several."],
  [
    "routed",
    "Routed",
    "Messages that gateways with a probe passed on, by the groups of sender and next node; each counts at every gateway on its way.",
  ],
] as const;
export type By = (typeof BY)[number][0];

export const byOf = (text: string | undefined): By =>
  BY.find(([key]) => key === text)?.[0] ?? "link";

// Names of nodes and groups hold any character but a line's end.
const BETWEEN = "\n";

/** What a row is of: a node or a group, and for links and edges where it goes. */
export const sourceOf = (row: TrafficRow): string => row.from ?? row.node ?? row.group ?? "";

export const rowId = (row: TrafficRow): string =>
  row.to === undefined ? sourceOf(row) : `${sourceOf(row)}${BETWEEN}${row.to}`;

const ends = (id: string): [string, string] => {
  const at = id.indexOf(BETWEEN);
  return at < 0 ? [id, id] : [id.slice(0, at), id.slice(at + BETWEEN.length)];
};

/** The title of a row. */
export function of(by: By, id: string): string {
  const [from, to] = ends(id);
  if (by === "gateway") return `Gateway ${from}`;
  if (by === "group") return `Group ${from}`;
  return from === to ? `Within ${from}` : `${from} → ${to}`;
}

/** What the server is asked for a row's time series; all traffic where none is chosen. */
export function seriesFor(by: By, id: string | null): SeriesOf {
  if (id === null) return { kind: "total" };
  const [from, to] = ends(id);
  switch (by) {
    case "link":
    case "edge":
    case "routed":
      return { kind: by, from, to };
    case "gateway":
      return { kind: "gateway", node: from };
    case "group":
      return { kind: "group", group: from };
  }
}

const SUMMED = ["msgs_s", "bytes_s", "msgs", "bytes", "forwarded_s"] as const;
export type Sums = Record<(typeof SUMMED)[number], number | null>;

/** Of what is known; null where nothing is. */
export function sums(rows: readonly TrafficRow[]): Sums {
  const sum = (of: (typeof SUMMED)[number]) =>
    rows.reduce<number | null>(
      (total, row) => (row[of] == null ? total : (total ?? 0) + row[of]),
      null,
    );
  return Object.fromEntries(SUMMED.map((of) => [of, sum(of)])) as Sums;
}

/** Groups and the edges between them share all traffic; each page has one part. */
export const OTHER_PART: Partial<Record<By, By>> = { group: "edge", edge: "group" };
