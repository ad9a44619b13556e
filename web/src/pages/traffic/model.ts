// SPDX-License-Identifier: Apache-2.0
// The kinds of traffic that are asked for, their rows, and the series of a row.
import { messageRate, number } from "../../lib/format";
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
    "Nodes in several groups: all that they send and receive, and of that what they only passed on.",
  ],
  ["group", "Group", "Between members of one group; in equal parts where they share several."],
  [
    "routed",
    "Routed",
    "Messages that gateways with a probe passed on, by the groups of sender and next node.",
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

/** What else is asked for, so that a sum can be told: of groups the edges, which share all traffic; of gateways the links. */
export const ALSO: Partial<Record<By, By>> = { group: "edge", edge: "group", gateway: "link" };

/** The most rows that the server gives: so many may not be all. */
export const MOST_ROWS = 5000;

const NO_SUMS: Sums = { msgs_s: null, bytes_s: null, msgs: null, bytes: null, forwarded_s: null };

/** The traffic of some gateways, each message once: one from gateway to gateway is in the rows of both. */
export function gatewaySums(gateways: readonly TrafficRow[], links: readonly TrafficRow[]): Sums {
  const { forwarded_s } = sums(gateways);
  if (links.length >= MOST_ROWS) return { ...NO_SUMS, forwarded_s };
  const nodes = new Set(gateways.map((row) => row.node));
  const theirs = links.filter(({ from, to }) => nodes.has(from) || nodes.has(to));
  return { ...sums(theirs), forwarded_s };
}

/** What the server names in the place of a group. */
export const NO_GROUPS: Readonly<Record<string, string>> = {
  "(free)": "free nodes",
  "(hidden)": "hidden nodes",
  "(gateway)": "gateways",
};

/** How the rows and those that were also asked for add up, in words; null where there is nothing to say. */
export function summary(
  by: By,
  rows: readonly TrafficRow[],
  also: readonly TrafficRow[],
  isRecording = false,
): string | null {
  if (by === "routed") {
    if (rows.length === 0) return null;
    const old = isRecording ? " (A recording of before version 0.1.0 counts it at each.)" : "";
    return `Each message counts once, at the first gateway on its way; how much each gateway passed on is by gateway.${old}`;
  }
  if (by === "gateway")
    return rows.length === 0
      ? null
      : "In the total each message on a link counts once, also one from gateway to gateway, which is in both rows. Forwarded adds up what each gateway passed on: a message that crossed two was passed on twice.";
  if (ALSO[by] === undefined || rows.length + also.length === 0) return null;
  const [groups, edges] = by === "group" ? [rows, also] : [also, rows];
  const rate = (of: readonly TrafficRow[]) => sums(of).msgs_s ?? 0;
  const isAt = (place: string) => (row: TrafficRow) => row.from === place || row.to === place;
  const attached = edges.filter(isAt("(hidden)"));
  const free = edges.filter((row) => isAt("(free)")(row) && !attached.includes(row));
  const between = edges.filter((row) => !attached.includes(row) && !free.includes(row));
  const own = (group: string) => groups.filter((row) => row.group === group);
  const hidden = rate([...attached, ...own("(hidden)")]);
  const inside = groups.filter((row) => !Object.hasOwn(NO_GROUPS, row.group ?? ""));
  const parts = [
    `inside groups ${number(rate(inside))}`,
    `between them ${number(rate(between))}`,
    ...part("with and between free nodes", rate([...free, ...own("(free)")])),
    ...part("with hidden nodes, such as monitors and tools,", hidden),
  ];
  const text = `${parts.slice(0, -1).join(", ")} and ${parts.at(-1)}`;
  return `${text[0].toUpperCase()}${text.slice(1)}: all traffic is ${messageRate(rate(groups) + rate(edges))}.`;
}

const part = (what: string, rate: number): string[] =>
  rate > 0 ? [`${what} ${number(rate)}`] : [];
