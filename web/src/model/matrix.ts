// SPDX-License-Identifier: Apache-2.0
// The same traffic as a matrix: groups by groups, or the nodes of one group by those of another.
import { type Frame, LINK_STRIDE } from "./frame";
import type { Topology } from "./topology";
import { Flows, FREE, FREE_NAME, HIDDEN, HIDDEN_NAME, placesOf } from "./flows";

export interface Label {
  id: number;
  name: string;
}

export interface Matrix {
  kind: "groups" | "nodes";
  rows: readonly Label[];
  columns: readonly Label[];
  /** By row * columns + column; from the row's to the column's. */
  msgs: Float64Array;
  bytes: Float64Array;
  direct: Uint8Array;
}

export function groupMatrix(topology: Topology, frame: Frame): Matrix {
  const labels: Label[] = topology.groups.map(({ id, name }) => ({ id, name }));
  const flows = [...new Flows(topology, frame).all()];
  for (const [id, name] of [
    [FREE, FREE_NAME],
    [HIDDEN, HIDDEN_NAME],
  ] as const)
    if (members(topology, id).length > 0 || flows.some(({ from, to }) => from === id || to === id))
      labels.push({ id, name });
  const matrix = empty("groups", labels, labels);
  const place = new Map(labels.map((label, i) => [label.id, i]));
  for (const flow of flows) {
    const row = place.get(flow.from);
    const column = place.get(flow.to);
    if (row !== undefined && column !== undefined)
      add(
        matrix,
        row,
        column,
        flow.msgs,
        flow.bytes,
        flow.direct > 0 && flow.from >= 0 && flow.to >= 0,
      );
  }
  return matrix;
}

/** Members of both groups are in the rows and in the columns; those that nobody watches are one. */
export function nodeMatrix(topology: Topology, frame: Frame, from: number, to: number): Matrix {
  const withOthers = (group: number) =>
    group === HIDDEN
      ? [...members(topology, HIDDEN), { id: HIDDEN, name: HIDDEN_NAME }]
      : members(topology, group);
  const matrix = empty("nodes", withOthers(from), withOthers(to));
  const rows = new Map(matrix.rows.map((label, i) => [label.id, i]));
  const columns = new Map(matrix.columns.map((label, i) => [label.id, i]));
  const { links } = frame;
  for (let i = 0; i < links.length; i += LINK_STRIDE) {
    const sender = topology.node(links[i]);
    const receiver = topology.node(links[i + 1]);
    const row = rows.get(sender?.id ?? HIDDEN);
    const column = columns.get(receiver?.id ?? HIDDEN);
    if (row === undefined || column === undefined) continue;
    const a = sender?.groups ?? [];
    const b = receiver?.groups ?? [];
    const direct = a.length > 0 && b.length > 0 && !a.some((group) => b.includes(group));
    add(matrix, row, column, links[i + 2], links[i + 3], direct);
  }
  return matrix;
}

function members(topology: Topology, group: number): Label[] {
  const nodes = topology.nodes.filter((node) => placesOf(node).includes(group));
  return nodes.map(({ id, name }) => ({ id, name }));
}

function empty(kind: Matrix["kind"], rows: readonly Label[], columns: readonly Label[]): Matrix {
  const size = rows.length * columns.length;
  return {
    kind,
    rows,
    columns,
    msgs: new Float64Array(size),
    bytes: new Float64Array(size),
    direct: new Uint8Array(size),
  };
}

function add(
  matrix: Matrix,
  row: number,
  column: number,
  msgs: number,
  bytes: number,
  direct: boolean,
): void {
  const at = row * matrix.columns.length + column;
  matrix.msgs[at] += msgs;
  matrix.bytes[at] += bytes;
  if (direct && msgs > 0) matrix.direct[at] = 1;
}
