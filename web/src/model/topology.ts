// SPDX-License-Identifier: Apache-2.0
// A topology as pages ask it: by id, by name, with the gateways told apart. Nodes and groups are in
// the natural order of their names, and so are the nodes of a group.
import { byName } from "../lib/natural";
import type { Monitor, TopologyGroup, TopologyMessage, TopologyNode } from "./protocol";

export class Topology {
  readonly epoch: number;
  readonly t: number;
  readonly nodes: readonly TopologyNode[];
  readonly groups: readonly TopologyGroup[];
  readonly monitors: readonly Monitor[];
  private readonly nodesById = new Map<number, TopologyNode>();
  private readonly groupsById = new Map<number, TopologyGroup>();
  private readonly nodesByName = new Map<string, TopologyNode>();
  private readonly groupsByName = new Map<string, TopologyGroup>();

  constructor(message: Omit<TopologyMessage, "type">) {
    this.epoch = message.epoch;
    this.t = message.t;
    this.nodes = [...(message.nodes ?? [])].sort(byName);
    const place = new Map(this.nodes.map((node, i) => [node.id, i]));
    const inOrder = (a: number, b: number) => (place.get(a) ?? -1) - (place.get(b) ?? -1);
    this.groups = (message.groups ?? [])
      .map((group) => ({ ...group, nodes: [...group.nodes].sort(inOrder) }))
      .sort(byName);
    this.monitors = message.monitors ?? [];
    for (const node of this.nodes) {
      this.nodesById.set(node.id, node);
      this.nodesByName.set(node.name, node);
    }
    for (const group of this.groups) {
      this.groupsById.set(group.id, group);
      this.groupsByName.set(group.name, group);
    }
  }

  node(id: number): TopologyNode | undefined {
    return this.nodesById.get(id);
  }

  group(id: number): TopologyGroup | undefined {
    return this.groupsById.get(id);
  }

  nodeNamed(name: string): TopologyNode | undefined {
    return this.nodesByName.get(name);
  }

  groupNamed(name: string): TopologyGroup | undefined {
    return this.groupsByName.get(name);
  }

  /** The groups of a node that the topology knows, in their order. */
  groupsOf(node: TopologyNode): TopologyGroup[] {
    return node.groups.map((id) => this.groupsById.get(id)).filter((group) => group !== undefined);
  }

  isGateway(node: TopologyNode): boolean {
    return node.groups.length > 1;
  }
}
