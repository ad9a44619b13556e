// SPDX-License-Identifier: Apache-2.0
// The table of processes: asked of the server in its order, of which some have lanes.
import { h, set, text as setText } from "../../../lib/dom";
import { count, messageOf } from "../../../lib/format";
import { type Table, table } from "../../../lib/table";
import { card, type Choice, choice } from "../../../ui/parts";
import { type About, getProcesses, type Of, type Process, type Sums } from "../answers";
import { lasting, partOf, type Range } from "../range";
import { ProcessTree } from "./tree";
import { measure } from "../../../lib/columns";

/** Rows that are asked for; a search finds the others. */
const ROWS = 200;
const SEARCH_MS = 250;
const LATER_MS = 400;

type Answer = Awaited<ReturnType<typeof getProcesses>>;

/** What a page without a range asks first; begun early it comes sooner. */
export const firstProcesses = (): Promise<Answer> => getProcesses("run", "", ROWS, "process");

/** What the card lists. */
export type Listing = "list" | "tree" | "ports";

export interface ProcessEvents {
  /** The details of one are to be seen. */
  opened(process: number): void;
  /** One is to have a lane, or none any more. */
  toggled(process: Process, shown: boolean): void;
  first(processes: readonly Process[]): void;
  listed(listing: Listing): void;
  failed(message: string): void;
}

const time = (key: keyof Sums, label: string, hint: string, wide = false) =>
  measure(key, label, (row: Process) => row[key], lasting, {
    hint,
    width: "6.4rem",
    narrow: "5rem",
    wide,
  });

const amount = (key: keyof Sums, label: string, hint: string) =>
  measure(key, label, (row: Process) => row[key], count, { hint, wide: true, width: "6rem" });

export class Processes {
  readonly root: HTMLElement;
  private readonly table: Table<Process>;
  private readonly search = h("input", {
    class: "input",
    type: "search",
    placeholder: "Name, pid or function",
    "aria-label": "Search processes",
    "data-search": true,
    autocomplete: "off",
    spellcheck: "false",
  });
  private readonly counted = h("span", { class: "muted num", role: "status" });
  private sort: keyof Sums = "run";
  private lanes: ReadonlySet<number> = new Set();
  private rows: readonly Process[] = [];
  private timer: ReturnType<typeof setTimeout> | undefined;
  private asked = 0;
  private isFirst = true;
  private readonly tree: ProcessTree;
  private readonly listings: Choice<Listing>;
  private readonly says = h("p", { class: "profile-says muted num", role: "status" });
  private listing: Listing = "list";

  constructor(
    private readonly about: About,
    private range: Range,
    private readonly events: ProcessEvents,
    first: Promise<Answer>,
  ) {
    this.tree = new ProcessTree({
      opened: events.opened,
      check: (branch) => this.check(branch),
      searched: (entry) => {
        this.search.value = entry;
        events.listed("list");
        void this.ask();
      },
      failed: events.failed,
    });
    this.listings = choice<Listing>(
      "How processes are listed",
      [
        ["list", "List"],
        ["tree", "Tree", "Who began whom"],
        ...(about.has_ports ? ([["ports", "Ports"]] as const) : []),
      ],
      "list",
      (listing) => events.listed(listing),
    );
    this.table = table<Process>({
      caption: "Processes",
      id: ({ process }) => String(process),
      order: { key: "run", direction: "descending" },
      onOrder: ({ key }) => this.sorted(key),
      maxHeight: "26rem",
      empty: "No process matches.",
      onChoose: ({ process }) => events.opened(process),
      columns: [
        {
          key: "lane",
          label: "Lane",
          hint: "Shown on the time line",
          width: "3.6rem",
          narrow: "3.2rem",
          value: ({ process }) => this.lanes.has(process),
          show: (row) => this.check(row),
        },
        {
          key: "name",
          label: "Process",
          value: ({ name }) => name,
          show: (row) => h("span", { class: "lines", title: `${row.name} ${row.entry}` }, row.name),
        },
        {
          key: "entry",
          label: "Begins in",
          wide: true,
          value: (row) => begun(row),
          show: (row) => h("span", { class: "lines", title: begun(row) }, begun(row)),
        },
        time("run", "Runs", "All the time in which it ran"),
        {
          ...time(
            "runnable",
            "Waits for a scheduler",
            "Time in which it could run, and no scheduler ran it",
          ),
          width: "10rem",
          narrow: "6.4rem",
        },
        time("wait", "Waits", "Time in which it waited for something else", true),
        time(
          "gc",
          "GC",
          "Collections of garbage, which are part of the time in which it ran",
          true,
        ),
        amount("ins", "Times in", "How often it was scheduled in"),
        amount("received", "Received", "Messages that came for it"),
        amount("sent", "Sent", "Messages that it sent"),
      ],
    });
    this.search.addEventListener("input", () => {
      clearTimeout(this.timer);
      this.timer = setTimeout(() => void this.ask(), SEARCH_MS);
    });
    this.root = card(
      "Processes",
      {
        hint: "Choose one for its waits and messages.",
        tools: [this.listings.root, this.search, this.counted],
        testid: "profile-processes",
      },
      this.says,
      this.table.root,
      this.tree.root,
    );
    this.tree.root.hidden = true;
    void this.ask(partOf(range, about.duration) === null ? first : undefined);
  }

  /** A list of those that did something, of all by who began whom, or of ports. */
  as(listing: Listing): void {
    if (listing === this.listing) return;
    this.listing = listing;
    this.listings.choose(listing);
    const isTree = listing === "tree";
    this.tree.root.hidden = !isTree;
    for (const one of [this.table.root, this.says, this.search, this.counted]) one.hidden = isTree;
    if (isTree) this.tree.show();
    else void this.ask();
  }

  /** The part of the time whose sums are shown; asks when it has stood still for a moment. */
  follow(range: Range): void {
    if (range.from === this.range.from && range.to === this.range.to) return;
    this.range = range;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => void this.ask(), LATER_MS);
  }

  /** Which have lanes now. */
  show(lanes: ReadonlySet<number>): void {
    this.lanes = lanes;
    this.table.rows(this.rows);
    if (this.listing === "tree") this.tree.draw();
  }

  mark(process: number | null): void {
    this.table.mark(process === null ? null : String(process));
    this.tree.mark(process);
  }

  destroy(): void {
    clearTimeout(this.timer);
    this.asked = -1;
  }

  private check(row: Process): HTMLElement {
    const shown = this.lanes.has(row.process);
    const box = h("button", {
      type: "button",
      class: "profile-check",
      role: "checkbox",
      "aria-checked": String(shown),
      "aria-label": `${row.name} on the time line`,
      onclick: () => this.events.toggled(row, !this.lanes.has(row.process)),
    });
    box.textContent = shown ? "✓" : "";
    return box;
  }

  /** The server knows all of them, this table those that are first. */
  private sorted(key: string): void {
    const known = ["run", "runnable", "wait", "gc", "ins", "received", "sent"] as const;
    const sort = known.find((one) => one === key);
    if (sort === undefined || sort === this.sort) return;
    this.sort = sort;
    void this.ask();
  }

  private async ask(first?: Promise<Answer>): Promise<void> {
    const mine = (this.asked += 1);
    const part = partOf(this.range, this.about.duration);
    const kind = this.listing === "ports" ? "port" : "process";
    set(this.root, "aria-busy", true);
    try {
      const words = this.search.value.trim();
      const { processes, matching, of } = await (first ??
        getProcesses(this.sort, words, ROWS, kind, part));
      if (this.isFirst) this.events.first(processes);
      this.isFirst = false;
      if (mine !== this.asked) return;
      this.rows = processes;
      this.table.rows(processes);
      setText(this.says, OF[part === null ? "all" : of]);
      setText(
        this.counted,
        matching > processes.length
          ? `${processes.length} of ${count(matching)}`
          : `${count(matching)}`,
      );
    } catch (error) {
      if (mine === this.asked) this.events.failed(messageOf(error));
    } finally {
      if (mine === this.asked) set(this.root, "aria-busy", null);
    }
  }
}

/** A process begins in a function; a port was opened by a process. */
const begun = ({ kind, entry, parent_name: owner }: Process): string =>
  kind === "port" && owner !== "" ? `opened by ${owner}` : entry;

const OF: Record<Of | "all", string> = {
  all: "Of the whole recording.",
  part: "Of the part that the time line shows.",
  whole: "Of the whole recording: the part that the time line shows has too many events.",
};
