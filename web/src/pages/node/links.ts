// SPDX-License-Identifier: Apache-2.0
// The node's links and why it has each, and what its own traffic is made of.
import type { Ctx } from "../../ui/ctx";
import { card, nodeLink } from "../../ui/parts";
import { type Table, table } from "../../lib/table";
import type { LinkDetail } from "../../model/protocol";
import { h } from "../../lib/dom";
import { measure } from "../../lib/columns";
import { bytes, duration, number } from "../../lib/format";

const of =
  (field: string) =>
  (row: LinkDetail): number | null =>
    typeof row[field] === "number" ? (row[field] as number) : null;

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
        {
          key: "node",
          label: "To",
          value: (row) => row.node,
          show: (row) => nodeLink(ctx, row.node),
        },
        {
          key: "why",
          label: "Why",
          value: (row) => (row.reasons ?? []).join(", "),
          show: (row) => reasons(row, this.stock),
        },
        measure("out", "msg/s sent", of("out_msgs_s"), number, {
          width: "6.2rem",
          hint: "Messages sent to it a second",
        }),
        measure("out_bytes", "Bytes/s sent", of("out_bytes_s"), bytes, {
          width: "6.6rem",
          wide: true,
        }),
        measure("in", "msg/s received", of("in_msgs_s"), number, {
          width: "7.6rem",
          wide: true,
          hint: "Messages received from it a second",
        }),
        measure("in_bytes", "Bytes/s received", of("in_bytes_s"), bytes, {
          width: "8.2rem",
          wide: true,
        }),
        measure("pending", "Queued", of("pending"), bytes, {
          width: "5rem",
          wide: true,
          hint: "Bytes in the link's queue, not yet sent",
        }),
        measure("since", "Up for", (row) => (this.stock ? null : of("since_s")(row)), duration, {
          width: "6.8rem",
          wide: true,
        }),
      ],
    });
    this.root = card(
      "Links",
      {
        hint: "The nodes this one is linked to, why, and the traffic of each link.",
        testid: "links",
      },
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
    return h("span", { class: "muted", title: why }, why);
  }
  return h(
    "span",
    { class: "tags", title: all.join("\n") },
    ...all.map((one) => h("span", { class: "tag" }, one)),
  );
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
        measure("msgs", "Messages", (row) => row.msgs, number, { width: "7rem" }),
        measure("bytes", "Bytes", (row) => row.bytes, bytes, { width: "7rem" }),
      ],
    });
    this.root = card(
      "Traced messages",
      { hint: "Since the last report, estimated from the sample." },
      this.table.root,
    );
  }

  draw(rows: readonly FlowRow[] | undefined): void {
    this.root.hidden = (rows ?? []).length === 0;
    this.table.rows(rows ?? []);
  }
}
