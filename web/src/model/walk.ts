// SPDX-License-Identifier: Apache-2.0
// The groups in the order of a walk over their gateways, so that groups with gateways in common lie
// near each other on the map. A ring of groups comes out as a ring, a chain as a chain.

interface Given {
  groups: readonly { id: number }[];
  nodes: readonly { groups: readonly number[] }[];
}

export function walk({ groups, nodes }: Given): number[] {
  const shared = sharedNodes(nodes);
  const neighbours = (id: number) => shared.get(id) ?? new Map<number, number>();
  const order = new Map(groups.map(({ id }, i) => [id, i]));
  const left = new Set(order.keys());
  const open = (id: number) => [...neighbours(id).keys()].filter((other) => left.has(other)).length;
  /** Next: tied by most nodes, then with the fewest ways on, so that no end is left behind; then the first. */
  const best = (ids: number[], ties: (id: number) => number) =>
    ids.sort(
      (a, b) =>
        ties(b) - ties(a) ||
        open(a) - open(b) ||
        (order.get(a) as number) - (order.get(b) as number),
    )[0];
  const way: number[] = [];
  const go = (id: number) => {
    left.delete(id);
    way.push(id);
  };
  while (left.size > 0) {
    // An end of a chain is where a walk begins.
    const linked = [...left].filter((id) => open(id) > 0);
    go(best(linked.length > 0 ? linked : [...left], () => 0));
    for (let from = way.length - 1; from >= 0;) {
      const here = neighbours(way[from]);
      const next = [...here.keys()].filter((id) => left.has(id));
      if (next.length === 0) {
        from--;
        continue;
      }
      go(best(next, (id) => here.get(id) as number));
      from = way.length - 1;
    }
  }
  return way;
}

/** How many nodes each two groups share. */
function sharedNodes(nodes: Given["nodes"]): Map<number, Map<number, number>> {
  const shared = new Map<number, Map<number, number>>();
  for (const { groups } of nodes) {
    for (const one of groups) {
      for (const other of groups) {
        if (one === other) continue;
        const row = shared.get(one) ?? new Map<number, number>();
        row.set(other, (row.get(other) ?? 0) + 1);
        shared.set(one, row);
      }
    }
  }
  return shared;
}
