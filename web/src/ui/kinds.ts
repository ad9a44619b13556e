// SPDX-License-Identifier: Apache-2.0
// What traffic is made of: the messages that the library itself sends, by what they are for.
import { measure } from "../lib/columns";
import { bytes, number } from "../lib/format";
import { type Table, table } from "../lib/table";
import type { Rate } from "../model/protocol";
import { card } from "./parts";

interface KindRow {
  kind: string;
  rate: Rate;
}

/** Of some kinds messages alone are counted: those have messages and no bytes. */
const bytesOf = ({ rate: [messages, size] }: KindRow): number | null =>
  messages > 0 && size === 0 ? null : size;

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
        measure("msgs", "msg/s", (row) => row.rate[0], number, {
          width: "5.2rem",
          hint: "Messages a second",
        }),
        measure("bytes", "Bytes/s", bytesOf, bytes, { width: "6rem" }),
      ],
    });
    this.root = card(
      "Traffic by kind",
      { hint: "Messages that the library itself sends, by purpose." },
      this.table.root,
    );
  }

  draw(kinds: Readonly<Record<string, Rate>> | undefined): void {
    this.table.rows(Object.entries(kinds ?? {}).map(([kind, rate]) => ({ kind, rate })));
  }
}
