// SPDX-License-Identifier: Apache-2.0
// What a few letters may mean: groups and nodes by any part of their names, the likeliest first.
import { natural } from "../lib/natural";
import type { Topology } from "./topology";

export interface Match {
  kind: "group" | "node";
  id: number;
  name: string;
}

/** How well a name fits: 0 exactly, 1 at its beginning, 2 anywhere, null not at all. */
function fit(name: string, words: string): number | null {
  const text = name.toLowerCase();
  // A node is also called by what stands before or after its @.
  if (text === words || text.split("@").includes(words)) return 0;
  if (text.startsWith(words)) return 1;
  return words.split(/\s+/).every((word) => text.includes(word)) ? 2 : null;
}

/** Groups and nodes whose name has all the words: those of exactly that name first, then in natural order. */
export function search(topology: Topology, words: string): Match[] {
  const wanted = words.trim().toLowerCase();
  if (wanted === "") return [];
  const found: [number, Match][] = [];
  const add = (kind: Match["kind"], { id, name }: { id: number; name: string }) => {
    const rank = fit(name, wanted);
    if (rank !== null) found.push([rank, { kind, id, name }]);
  };
  for (const group of topology.groups) add("group", group);
  for (const node of topology.nodes) add("node", node);
  found.sort(
    ([a, x], [b, y]) =>
      a - b || (x.kind === y.kind ? natural(x.name, y.name) : x.kind === "group" ? -1 : 1),
  );
  return found.map(([, match]) => match);
}
