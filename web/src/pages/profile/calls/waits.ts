// SPDX-License-Identifier: Apache-2.0
// All waits by place in the part that is shown: how many, how long, whose, and for whom.
import { cellBar } from "../../../lib/bars";
import { children as fill, h, text as setText } from "../../../lib/dom";
import { count } from "../../../lib/format";
import { type Table, table } from "../../../lib/table";
import { card } from "../../../ui/parts";
import { getPlaces, type Peer, type Place, type Places } from "../answers";
import { lasting, partOf, type Range } from "../range";
import { sourceButton } from "./source";
import { Still } from "../still";
import { ofWhat, Whose } from "./whose";
import { measure } from "../../../lib/columns";
import { linkButton, list } from "../parts";
import "./calls.css";

const ROWS = 200;
/** By what the server can put them in order. */
const SORTS = ["sum", "count", "mean"];

export interface WaitsEvents {
  /** Those of one process, or of all. */
  limited(process: number | null): void;
  opened(process: number): void;
  failed(message: string): void;
}

export class WaitsCard {
  readonly root: HTMLElement;
  private readonly whose: Whose;
  private readonly says = h("p", { class: "profile-says muted num", role: "status" });
  private readonly who = h("div", { class: "waits-who", "data-testid": "profile-waiters" });
  private readonly table: Table<Place>;
  private readonly still = new Still(
    () => this.root,
    (message) => this.fail(message),
  );
  private sort = "sum";
  private last: { range: Range; process: number | null } | null = null;
  private sum = 0;
  private chosen: number | null = null;

  constructor(
    private readonly duration: number,
    private readonly events: WaitsEvents,
  ) {
    this.whose = new Whose(events.limited);
    const time = (key: "mean" | "deviation", label: string, hint: string) =>
      measure(key, label, (row: Place) => Math.round(row[key]), lasting, {
        hint,
        wide: true,
        width: "6rem",
      });
    this.table = table<Place>({
      caption: "Waits by place",
      id: (row) => String(row.function),
      order: { key: "sum", direction: "descending" },
      onOrder: ({ key }) => this.sorted(key),
      maxHeight: "26rem",
      empty: "No answer yet.",
      onChoose: (row) => this.choose(row),
      columns: [
        {
          key: "site",
          label: "In",
          hint: "The function in which a process waits",
          value: (row) => row.site,
          show: (row) => h("span", { class: "lines", title: row.site }, row.site),
        },
        measure("count", "Times", (row) => row.count, count, { width: "6rem", narrow: "4.6rem" }),
        {
          key: "sum",
          label: "In all",
          value: (row) => row.sum,
          show: (row) => cellBar(row.sum / Math.max(1, this.sum), lasting(row.sum)),
          numeric: true,
          width: "7rem",
          narrow: "5rem",
        },
        time("mean", "Mean", "How long a wait is in the mean"),
        time("deviation", "Deviation", "By how much waits differ (standard deviation)"),
        measure("processes", "Processes", (row) => row.processes, count, {
          wide: true,
          width: "6rem",
          hint: "How many processes wait there",
        }),
        {
          key: "for",
          label: "Mostly for",
          hint: "Who sent the message that ended most of the time",
          value: (row) => row.waits_for[0]?.name ?? "",
          show: (row) => this.link(row.waits_for[0]),
          wide: true,
        },
      ],
    });
    this.root = card(
      "Waits",
      {
        hint: "Choose a place: who waits there, and for whom. Times of several processes are added.",
        tools: [this.whose.root],
        testid: "profile-waits",
      },
      this.says,
      this.table.root,
      this.who,
    );
  }

  /** Asks when the range has stood still for a moment; `open`: the process that is open on the page. */
  show(range: Range, process: number | null, open: number | null): void {
    this.whose.show(process, open);
    this.last = { range, process };
    this.still.ask(`${range.from}-${range.to}-${process}`, () => this.question(range, process));
  }

  destroy(): void {
    this.still.forget();
  }

  /** The server knows all of them, this table those that are first. */
  private sorted(key: string): void {
    if (!SORTS.includes(key) || key === this.sort) return;
    this.sort = key;
    const { last } = this;
    if (last !== null) void this.still.now(() => this.question(last.range, last.process));
  }

  private async question(range: Range, process: number | null): Promise<() => void> {
    const part = partOf(range, this.duration);
    const places = await getPlaces(part, process, this.sort, ROWS);
    return () => this.draw(places, part !== null);
  }

  private fail(message: string): void {
    setText(this.says, message);
    this.table.empty("No answer.");
    this.table.rows([]);
    fill(this.who);
  }

  private draw({ of, whose, places, count: n, sum, rows }: Places, isPart: boolean): void {
    this.sum = sum;
    setText(
      this.says,
      `${count(n)} waits at ${count(places)} ${places === 1 ? "place" : "places"}, ${lasting(sum)} together, ${ofWhat(of, isPart, whose)}` +
        (places > rows.length ? `; the first ${count(rows.length)} are shown` : "") +
        ".",
    );
    this.table.empty("Nothing waited in this part.");
    this.table.rows(rows);
    this.choose(rows.find((row) => row.function === this.chosen) ?? rows[0] ?? null);
  }

  private choose(row: Place | null): void {
    this.chosen = row === null ? null : row.function;
    this.table.mark(row === null ? null : String(row.function));
    if (row === null) fill(this.who);
    else
      fill(
        this.who,
        h(
          "p",
          { class: "row" },
          h("strong", { class: "waits-site" }, row.site),
          row.function === 0
            ? null
            : sourceButton(row.function, "Source", this.events.failed, "button"),
        ),
        this.peers("Who waits there", row.waiters, row.processes),
        this.peers("For whom", row.waits_for, row.wakers),
      );
  }

  private peers(title: string, peers: readonly Peer[], all: number): HTMLElement | null {
    if (peers.length === 0) return null;

    return h(
      "div",
      {},
      h("h3", {}, title),
      list(
        ["process", "times", "in all"],
        peers.map((peer) => [this.link(peer), count(peer.count), lasting(peer.sum)]),
      ),
      all > peers.length
        ? h("p", { class: "profile-says muted" }, `and ${count(all - peers.length)} more`)
        : null,
    );
  }

  private link(peer: Peer | undefined): HTMLElement | null {
    return peer === undefined
      ? null
      : linkButton(peer.name, () => this.events.opened(peer.process));
  }
}
