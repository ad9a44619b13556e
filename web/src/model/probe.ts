// SPDX-License-Identifier: Apache-2.0
// Whether a node's probe reports to this monitor, and why not, as the monitor's words say it.
import type { TopologyNode } from "./protocol";

export type Probe =
  | "tells"
  /** It runs, for other monitoring nodes. */
  | "elsewhere"
  /** The monitor's configuration wants none. */
  | "unwanted"
  /** It could not be loaded or started. */
  | "failed"
  | "absent";

// How the monitor's reasons begin (sderl_mon_reach).
const REASONS: readonly (readonly [string, Probe])[] = [
  ["the probe tells other monitoring nodes", "elsewhere"],
  ["stock reading was asked for", "unwanted"],
  ["the probe cannot be loaded", "failed"],
  ["the probe does not start", "failed"],
];

export function probeOf({ source, why }: Pick<TopologyNode, "source" | "why">): Probe {
  if (source !== "stock") return "tells";
  return REASONS.find(([begin]) => why?.startsWith(begin))?.[1] ?? "absent";
}
