// SPDX-License-Identifier: Apache-2.0
// The node's links and why it has each, and what its own traffic is made of.
import type { Ctx } from "../app/ctx";
import { card, nodeLink } from "../lib/parts";
import { type Column, type Table, table } from "../lib/table";
import type { LinkDetail, Rate } from "../store/protocol";
import { h } from "../lib/dom";
import { bytes, duration, number, type Format } from "../lib/format";

const value = (row: LinkDetail, key: string): number | null =>
  typeof row[key] === "number" ? (row[key] as number) : null;

const flow = (
  key: string,
  label: string,
  field: string,
  show: Format,
  width: string,
  hint: string,
  wide = false,
): Column<LinkDetail> => ({
  key,
  label,
  hint,
  value: (row) => value(row, field),
  show: (row) => show(value(row, field)),
  numeric: true,
  width,
  wide,
});

export class Links {
  readonly root: HTMLElement;
  private stock = false;
  private readonly table: Table<LinkDetail>;

  constructor(ctx: Ctx) {
    this.table = table<LinkDetail>({
      caption: "Links",
      id: (row) => row.node,
      order: { key: "out", direction: "descending" },
      filter: "",
      maxHeight: "23rem",
      empty: "This node has no links to other nodes.",
      filterText: (row) => `${row.node} ${row.type} ${(row.reasons ?? []).join(" ")}`,
      columns: [
        { key: "node", label: "To", value: (row) => row.node, show: (row) => nodeLink(ctx, row.node) },
        {
          key: "why",
          label: "Why",
          value: (row) => (row.reasons ?? []).join(", "),
          show: (row) => reasons(row, this.stock),
        },
        flow("out", "msg/s out", "out_msgs_s", number, "5.6rem", "Messages sent to it a second"),
        flow("out_bytes", "Bytes/s out", "out_bytes_s", bytes, "6.2rem", "Bytes sent to it a second", true),
        flow("in", "msg/s in", "in_msgs_s", number, "5.2rem", "Messages received from it a second", true),
        flow("in_bytes", "Bytes/s in", "in_bytes_s", bytes, "6rem", "Bytes received from it a second", true),
        flow("pending", "Waiting", "pending", bytes, "5rem", "Bytes that wait to be sent", true),
        flow("since", "Up for", "since_s", duration, "6.8rem", "How long the link has been up", true),
      ],
    });
    this.root = card(
      "Links",
      { hint: "To which nodes, why, and what goes over them.", testid: "links" },
      this.table.root,
    );
  }

  /** A stock node does not know why it has a link. */
  draw(links: readonly LinkDetail[] | undefined, stock: boolean): void {
    this.stock = stock;
    this.table.rows(links ?? []);
  }
}

function reasons(row: LinkDetail, stock: boolean): HTMLElement {
  const all = row.reasons ?? [];
  if (all.length === 0) {
    const why = row.type === "hidden" ? "hidden node" : stock ? "not known" : "not by this library";
    return h("span", { class: "muted" }, why);
  }
  return h(
    "span",
    { class: "tags", title: all.join("\n") },
    ...all.map((one) => h("span", { class: "tag" }, one)),
  );
}

interface KindRow {
  kind: string;
  rate: Rate;
}

export class Kinds {
  readonly root: HTMLElement;
  private readonly table: Table<KindRow>;

  constructor() {
    this.table = table<KindRow>({
      caption: "Traffic by kind",
      id: (row) => row.kind,
      order: { key: "msgs", direction: "descending" },
      empty: "No kinds of traffic were counted on this node.",
      columns: [
        {
          key: "kind",
          label: "Kind",
          value: (row) => row.kind,
          show: (row) => row.kind.replaceAll("_", " "),
        },
        {
          key: "msgs",
          label: "msg/s",
          hint: "Messages a second",
          value: (row) => row.rate[0],
          show: (row) => number(row.rate[0]),
          numeric: true,
          width: "5.2rem",
        },
        {
          key: "bytes",
          label: "Bytes/s",
          hint: "Bytes a second",
          value: (row) => row.rate[1],
          show: (row) => bytes(row.rate[1]),
          numeric: true,
          width: "6rem",
        },
      ],
    });
    this.root = card(
      "Traffic by kind",
      { hint: "What the library itself sends, and what it is for." },
      this.table.root,
    );
  }

  draw(kinds: Readonly<Record<string, Rate>> | undefined): void {
    this.table.rows(Object.entries(kinds ?? {}).map(([kind, rate]) => ({ kind, rate })));
  }
}

interface FlowRow {
  from: string;
  to: string;
  kind: string;
  msgs: number;
  bytes: number;
}

/** Who sends to whom, while tracing is on. */
export class Flows {
  readonly root: HTMLElement;
  private readonly table: Table<FlowRow>;

  constructor() {
    this.table = table<FlowRow>({
      caption: "Traced messages",
      id: (row) => `${row.from} ${row.to} ${row.kind}`,
      order: { key: "msgs", direction: "descending" },
      filter: "",
      maxHeight: "20rem",
      empty: "Nothing was traced yet.",
      columns: [
        { key: "from", label: "From", value: (row) => row.from },
        { key: "to", label: "To", value: (row) => row.to },
        {
          key: "msgs",
          label: "Messages",
          value: (row) => row.msgs,
          show: (row) => number(row.msgs),
          numeric: true,
          width: "7rem",
        },
        {
          key: "bytes",
          label: "Bytes",
          value: (row) => row.bytes,
          show: (row) => bytes(row.bytes),
          numeric: true,
          width: "7rem",
        },
      ],
    });
    this.root = card(
      "Traced messages",
      { hint: "Scaled up from the sample; since the last report." },
      this.table.root,
    );
  }

  draw(rows: readonly FlowRow[] | undefined): void {
    this.root.hidden = (rows ?? []).length === 0;
    this.table.rows(rows ?? []);
  }
}
