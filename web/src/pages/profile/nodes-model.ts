// SPDX-License-Identifier: Apache-2.0
// The nodes of a recording of several. Pure.
import type { Link, Node, Traffic } from "./answers";

/** The node of a process: each has the processes of a range of numbers. */
export const nodeOf = (process: number, nodes: readonly Node[]): Node | undefined =>
  nodes.find(({ first, last }) => process >= first && process <= last);

/** The node of a scheduler: schedulers are numbered on from node to node. */
export const nodeOfScheduler = (scheduler: number, nodes: readonly Node[]): Node | undefined =>
  [...nodes].sort((a, b) => b.scheduler - a.scheduler).find((node) => scheduler > node.scheduler);

/** A process's name without that of its node, for where the node is shown beside it. */
export function ownName(name: string, node: Node | undefined): string {
  const end = node === undefined ? "" : ` at ${node.node}`;
  return end !== "" && name.endsWith(end) ? name.slice(0, -end.length) : name;
}

export const schedulerName = (scheduler: number, nodes: readonly Node[]): string =>
  `scheduler ${scheduler - (nodeOfScheduler(scheduler, nodes)?.scheduler ?? 0)}`;

/** What a pair of nodes sends in the part that is shown, and how long that takes in the whole run. */
export interface Way {
  from: string;
  to: string;
  count: number;
  bytes: number;
  /** Nothing is known of the way to a node that was not recorded, or within a node. */
  link: Link | null;
}

/** Ways between different nodes that have messages in the part, or in the whole. */
export function waysOf(traffic: Traffic, nodes: readonly Node[]): Way[] {
  const names = new Map(nodes.map(({ number, node }) => [number, node]));
  const sent = new Map(
    traffic.sent.map((one) => [`${names.get(one.from)} ${names.get(one.to)}`, one]),
  );
  const ways = traffic.whole.map((link): Way => {
    const one = sent.get(`${link.from} ${link.to}`);
    return {
      from: link.from,
      to: link.to,
      count: one?.count ?? 0,
      bytes: one?.bytes ?? 0,
      link,
    };
  });
  const known = new Set(ways.map(({ from, to }) => `${from} ${to}`));
  const others = traffic.sent
    .filter(({ from, to }) => from !== to)
    .map(({ from, to, count, bytes }): Way => {
      const [a, b] = [names.get(from) ?? "?", names.get(to) ?? "?"];
      return { from: a, to: b, count, bytes, link: null };
    })
    .filter(({ from, to }) => !known.has(`${from} ${to}`));
  return [...ways, ...others];
}

/** Messages in the part within nodes, and between them. */
export function within(traffic: Traffic): { own: number; between: number } {
  let [own, between] = [0, 0];
  for (const { from, to, count } of traffic.sent)
    if (from === to) own += count;
    else between += count;
  return { own, between };
}
