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

/** What the numbers of a cluster are of, where it is not all probes: their absence, or no cluster at all. */
export type Source = "stock" | "mixed" | "elsewhere" | "synthetic";

/** Of the cluster as it is now: what the server said when the page connected may have changed since. */
export function clusterSource(
  mode: string | undefined,
  nodes: readonly Pick<TopologyNode, "source" | "why">[],
): Source | null {
  if (mode === "synthetic") return "synthetic";
  const told = nodes.filter(({ source }) => source !== null && source !== "none").map(probeOf);
  if (told.includes("elsewhere")) return "elsewhere";
  const lacking = told.filter((probe) => probe !== "tells").length;
  return lacking === 0 ? null : lacking === told.length ? "stock" : "mixed";
}
