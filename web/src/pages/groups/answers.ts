// SPDX-License-Identifier: Apache-2.0
// What the map answers those who look at it from outside: window.sderl.
import type { Topology } from "../../model/topology";
import type { HookGroup, HookNode } from "../../ui/hooks";
import type { GroupView } from "./view";

export function nodesOf(topology: Topology | null, view: GroupView): HookNode[] {
  const { scene } = view;
  if (topology === null || scene === null) return [];
  const frame = view.canvas.getBoundingClientRect();
  return topology.nodes.map((node) => {
    const i = node.id < scene.entityOfNode.length ? scene.entityOfNode[node.id] : -1;
    const place = i < 0 ? null : view.placeOf(i);
    return {
      name: node.name,
      status: node.status,
      groups: topology.groupsOf(node).map((group) => group.name),
      x: place === null ? null : place.x + frame.left,
      y: place === null ? null : place.y + frame.top,
    };
  });
}

export function groupsOf(topology: Topology | null, view: GroupView): HookGroup[] {
  const frame = view.canvas.getBoundingClientRect();
  const { k, x, y } = view.camera.transform;
  const discs = new Map(view.discs.items.map(({ disc }, i) => [disc.id, { disc, i }]));
  return (topology?.groups ?? []).map((group) => {
    const at = discs.get(group.id);
    return {
      name: group.name,
      nodes: group.nodes.map((id) => topology?.node(id)?.name).filter((name) => name !== undefined),
      expanded: at?.disc.expanded ?? false,
      x: at === undefined ? null : view.discs.x(at.i) * k + x + frame.left,
      y: at === undefined ? null : view.discs.y(at.i) * k + y + frame.top,
      r: at === undefined ? null : at.disc.r * k,
    };
  });
}
