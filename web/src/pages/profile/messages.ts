// SPDX-License-Identifier: Apache-2.0
// Who sends how much to whom, in the part of the run that is shown.
import { h, set, text as setText } from "../../lib/dom";
import { bytes, count } from "../../lib/format";
import { type Table, table } from "../../lib/table";
import { card } from "../../ui/parts";
import { getMessages, type Pair } from "./answers";
import { lasting, type Range, span } from "./range";

const ROWS = 100;
const LATER_MS = 400;

export class MessagesCard {
  readonly root: HTMLElement;
  private readonly says = h("p", { class: "profile-says muted num", role: "status" });
  private readonly table: Table<Pair>;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private asked = 0;
  private of = "";

  constructor(opened: (process: number) => void) {
    const link = (process: number, name: string) =>
      h(
        "button",
        { type: "button", class: "profile-link", title: name, onclick: () => opened(process) },
        name,
      );
    this.table = table<Pair>({
      caption: "Messages between processes",
      id: ({ from, to }) => `${from}-${to}`,
      order: { key: "count", direction: "descending" },
      maxHeight: "26rem",
      empty: "No message was sent in this part.",
      columns: [
        {
          key: "from",
          label: "From",
          value: (row) => row.from_name,
          show: (row) => link(row.from, row.from_name),
        },
        {
          key: "to",
          label: "To",
          value: (row) => row.to_name,
          show: (row) => link(row.to, row.to_name),
        },
        {
          key: "count",
          label: "Messages",
          value: (row) => row.count,
          show: (row) => count(row.count),
          numeric: true,
          width: "7rem",
          narrow: "5.4rem",
        },
        {
          key: "bytes",
          label: "Bytes",
          hint: "In external format",
          value: (row) => row.bytes,
          show: (row) => bytes(row.bytes),
          numeric: true,
          width: "7rem",
          narrow: "5.4rem",
        },
      ],
    });
    this.root = card("Messages", { testid: "profile-messages" }, this.says, this.table.root);
  }

  /** Asks when the range has stood still for a moment. */
  show(range: Range): void {
    const of = `${range.from}-${range.to}`;
    if (of === this.of) return;
    this.of = of;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => void this.ask(range), LATER_MS);
  }

  destroy(): void {
    clearTimeout(this.timer);
    this.asked = -1;
  }

  private async ask(range: Range): Promise<void> {
    const mine = (this.asked += 1);
    set(this.root, "aria-busy", true);
    try {
      const answer = await getMessages(range.from, range.to, ROWS);
      if (mine !== this.asked) return;
      const { pairs, count: n, bytes: size, rows } = answer;
      setText(
        this.says,
        `${count(n)} messages (${bytes(size)}) between ${count(pairs)} pairs in ${lasting(span(range))} from ${lasting(range.from)} on` +
          (pairs > rows.length ? `; the first ${rows.length} are shown` : ""),
      );
      this.table.rows(rows);
    } catch (error) {
      if (mine !== this.asked) return;
      setText(this.says, error instanceof Error ? error.message : String(error));
      this.table.rows([]);
    } finally {
      if (mine === this.asked) set(this.root, "aria-busy", null);
    }
  }
}
