// SPDX-License-Identifier: Apache-2.0
// What is known of a group. Where nothing measures it is null, and never 0.
import type { Flow } from "./flows";
import type { Frame } from "./frame";
import type { TopologyGroup } from "./protocol";
import type { Topology } from "./topology";

/** Names in a group; only a probe on one of its nodes counts them. */
export function namesOf(
  topology: Topology | null,
  frame: Frame | null,
  group: TopologyGroup,
): number | null {
  if (!group.nodes.some((id) => topology?.node(id)?.source === "probe")) return null;
  return frame?.group(group.id)?.["names"] ?? group.names;
}

/** The traffic of some nodes with each other: nothing is 0 only where one of them is measured. */
export function flowOf(
  flow: Flow | undefined,
  frame: Frame | null,
  nodes: readonly number[],
): { msgs: number | null; bytes: number | null } {
  if (flow !== undefined) return flow;
  const measured = nodes.some((id) => !Number.isNaN(frame?.value(id, "out_msgs_s") ?? NaN));
  return measured ? { msgs: 0, bytes: 0 } : { msgs: null, bytes: null };
}
