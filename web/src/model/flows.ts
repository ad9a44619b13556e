// SPDX-License-Identifier: Apache-2.0
// Traffic by group, by the server's rule (sderl_mon_traffic): it counts to the groups that both
// ends share, in equal parts; ends that share none count from each group of the sender to each of
// the receiver, in equal parts; nodes of no group are one group, FREE, and hidden ones, such as
// monitors, shells and tools, are another, HIDDEN, to which nodes that are linked but not watched belong, too.
import { type Frame, LINK_STRIDE } from "./frame";
import type { TopologyNode } from "./protocol";
import type { Topology } from "./topology";

export const FREE = -1;
export const FREE_NAME = "(free)";
export const HIDDEN = -2;
export const HIDDEN_NAME = "(hidden)";

export interface Flow {
  from: number;
  to: number;
  msgs: number;
  bytes: number;
  /** Of the messages, those of which the ends share no group: past the gateways. */
  direct: number;
}

const NONE: readonly number[] = [FREE];
const ATTACHED: readonly number[] = [HIDDEN];

/** The groups that a node counts for; undefined is one that nobody watches. */
export function placesOf(node: TopologyNode | undefined): readonly number[] {
  if (node === undefined) return ATTACHED;
  return node.groups.length > 0 ? node.groups : node.hidden ? ATTACHED : NONE;
}

/** Directed flows between groups; from = to is the traffic inside. */
export class Flows {
  private readonly flows = new Map<number, Flow>();

  constructor(topology: Topology, frame: Frame) {
    const { links } = frame;
    for (let i = 0; i < links.length; i += LINK_STRIDE) {
      const from = topology.node(links[i]);
      const to = topology.node(links[i + 1]);
      const msgs = links[i + 2];
      const bytes = links[i + 3];
      const a = placesOf(from);
      const b = placesOf(to);
      const shared = a.filter((group) => b.includes(group));
      if (shared.length > 0) {
        for (const group of shared)
          this.add(group, group, msgs / shared.length, bytes / shared.length, 0);
        continue;
      }
      const parts = a.length * b.length;
      for (const x of a)
        for (const y of b) this.add(x, y, msgs / parts, bytes / parts, msgs / parts);
    }
  }

  all(): IterableIterator<Flow> {
    return this.flows.values();
  }

  get(from: number, to: number): Flow | undefined {
    return this.flows.get(key(from, to));
  }

  private add(from: number, to: number, msgs: number, bytes: number, direct: number): void {
    let flow = this.flows.get(key(from, to));
    if (flow === undefined) {
      flow = { from, to, msgs: 0, bytes: 0, direct: 0 };
      this.flows.set(key(from, to), flow);
    }
    flow.msgs += msgs;
    flow.bytes += bytes;
    flow.direct += direct;
  }
}

/** Ids are small; HIDDEN is -2. */
function key(from: number, to: number): number {
  return (from + 2) * 65536 + to + 2;
}
