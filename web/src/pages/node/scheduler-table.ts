// SPDX-License-Identifier: Apache-2.0
// The ring in words and numbers, for those who want to read or hear it.
import { table } from "../../lib/table";
import type { SchedulerDetail } from "../../model/protocol";
import { h } from "../../lib/dom";
import { measure } from "../../lib/columns";
import { number, share } from "../../lib/format";

export class SchedulerTable {
  private readonly table = table<SchedulerDetail>({
    caption: "Schedulers",
    id: (row) => `${row.type} ${row.id}`,
    order: { key: "id", direction: "ascending" },
    maxHeight: "18rem",
    columns: [
      { key: "id", label: "No.", value: (row) => row.id, numeric: true, width: "4rem" },
      {
        key: "type",
        label: "Type",
        value: (row) => row.type,
        show: (row) => row.type.replace("_", " "),
      },
      {
        key: "socket",
        label: "Socket",
        value: (row) => row.socket ?? null,
        numeric: true,
        width: "5rem",
      },
      {
        key: "core",
        label: "Core",
        value: (row) => row.core ?? null,
        numeric: true,
        width: "5rem",
      },
      measure("queue", "Run queue", (row) => row.queue, number, { width: "6rem", narrow: "5rem" }),
      measure("util", "Utilisation", (row) => row.util, share, { width: "7rem", narrow: "6rem" }),
    ],
  });
  readonly root = h(
    "details",
    { class: "as-table" },
    h("summary", {}, "As a table"),
    this.table.root,
  );

  private latest: readonly SchedulerDetail[] = [];

  constructor() {
    this.root.addEventListener("toggle", () => this.table.rows(this.latest));
  }

  draw(schedulers: readonly SchedulerDetail[]): void {
    this.latest = schedulers;
    if (this.root.open) this.table.rows(schedulers);
  }
}
