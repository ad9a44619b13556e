// SPDX-License-Identifier: Apache-2.0
// Who sends how much to whom in the part of the run that is shown: a graph, and a table of the same.
import { h, text as setText } from "../../../lib/dom";
import { bytes, count } from "../../../lib/format";
import { type Table, table } from "../../../lib/table";
import { card, type Choice, choice } from "../../../ui/parts";
import { type About } from "../answers";
import {
  type Asked,
  type By,
  type Communication,
  type MessageEdge,
  type End,
  getCommunication,
} from "../sums-answers";
import { MessageGraph } from "./graph";
import { asked as askedFor, told } from "./graph-model";
import { lasting, type Range, span } from "../range";
import { measure } from "../../../lib/columns";
import { linkButton } from "../parts";
import { Still } from "../still";
import "./messages.css";

/** What there is room for in the picture. */
const MOST = { edges: 100, ends: 50 };

const TYPED_MS = 300;

export interface MessageEvents {
  opened(process: number): void;
  /** A choice for the address. */
  asked(query: Record<string, string>): void;
}

export class MessagesCard {
  readonly root: HTMLElement;
  private readonly says = h("p", { class: "profile-says muted num", role: "status" });
  private readonly table: Table<MessageEdge>;
  private readonly graph: MessageGraph;
  private readonly by: Choice<By>;
  private readonly sort: Choice<Asked["sort"]>;
  private readonly least = field("At least", "messages");
  private readonly mean = field("of at least", "bytes on average");
  private readonly around = h("p", { class: "graph-around row", hidden: true });
  private readonly still = new Still(
    () => this.root,
    (message) => {
      setText(this.says, message);
      this.around.hidden = this.asked.around === "";
      this.graph.draw(NOTHING, this.asked);
      this.table.empty("No answer.");
      this.table.rows([]);
    },
  );
  private typing: ReturnType<typeof setTimeout> | undefined;
  private part = "";
  private asked: Asked;
  private ends: ReadonlyMap<string, End> = new Map();
  /** The end whose neighbours are shown, as it was known last. */
  private known: { key: string; name: string; process: number } | null = null;

  constructor(
    private readonly about: About,
    private readonly events: MessageEvents,
  ) {
    this.asked = askedFor({}, false);
    this.graph = new MessageGraph((key) => events.asked({ around: key ?? "" }));
    this.by = choice<By>(
      "What exchanges messages",
      [
        ["process", "Processes"],
        ["kind", "Kinds", "Those of one name, or that begin in one function, are one"],
        ...(about.nodes.length > 0 ? ([["node", "Nodes"]] as const) : []),
      ],
      "process",
      (by) => events.asked({ ends: by === "process" ? "" : by, around: "" }),
    );
    this.sort = choice<Asked["sort"]>(
      "What makes edges thick",
      [
        ["count", "Messages", "Thick where there are many"],
        ["bytes", "Bytes", "Thick where there is much"],
      ],
      "count",
      (sort) => events.asked({ widths: sort === "count" ? "" : sort }),
    );
    for (const { input } of [this.least, this.mean])
      input.addEventListener("input", () => {
        clearTimeout(this.typing);
        this.typing = setTimeout(() => this.typed(), TYPED_MS);
      });
    this.table = edgesTable(
      (key) => this.ends.get(key),
      (end) => this.link(end),
    );
    this.root = card(
      "Messages",
      {
        hint: "Choose a process to see those with which it exchanges messages. The width of an edge is logarithmic.",
        tools: [this.by.root, this.sort.root],
        testid: "profile-messages",
      },
      h(
        "div",
        { class: "graph-filters", role: "group", "aria-label": "Which pairs are shown" },
        this.least.root,
        this.mean.root,
      ),
      this.around,
      this.says,
      h("div", { class: "graph-beside" }, this.graph.root, this.table.root),
    );
  }

  /** Asks when the range has stood still for a moment, and at once where another choice was made. */
  show(range: Range, query: Readonly<Record<string, string>>): void {
    const asked = askedFor(query, this.about.nodes.length > 0);
    const part = `${range.from}-${range.to}`;
    const waitMs = part === this.part ? 0 : undefined;
    this.part = part;
    this.asked = asked;
    this.by.choose(asked.by);
    this.sort.choose(asked.sort);
    for (const [{ input }, value] of [
      [this.least, asked.least],
      [this.mean, asked.mean],
    ] as const)
      if (document.activeElement !== input) input.value = value === 0 ? "" : String(value);
    const question = async () => {
      const answer = await getCommunication(range.from, range.to, asked, MOST);
      return () => this.draw(answer, asked, range);
    };
    this.still.ask(JSON.stringify([part, asked]), question, waitMs);
  }

  destroy(): void {
    this.still.forget();
    clearTimeout(this.typing);
    this.graph.destroy();
  }

  private typed(): void {
    const value = ({ input }: Field) => (Number(input.value) > 0 ? input.value : "");
    this.events.asked({ least: value(this.least), mean: value(this.mean) });
  }

  private draw(answer: Communication, asked: Asked, range: Range): void {
    this.ends = new Map(answer.ends.map((end) => [end.key, end]));
    const name = this.center(asked.around);
    setText(
      this.says,
      `In ${lasting(span(range))} from ${lasting(range.from)} on: ${told(answer, asked, name)}`,
    );
    this.graph.draw(answer, asked);
    this.table.empty(
      answer.all.edges === 0
        ? "No message was sent in this part."
        : asked.around === ""
          ? "No pair has so many messages of that size."
          : `${name} exchanges none of these messages in this part.`,
    );
    this.table.rows(answer.edges);
  }

  /** Tells whose neighbours are shown, also where they have no message in this part. */
  private center(key: string): string {
    const end = this.ends.get(key);
    if (end !== undefined) this.known = end;
    const known = this.known?.key === key ? this.known : { key, name: key, process: 0 };
    this.around.hidden = key === "";
    this.around.replaceChildren(
      h("span", {}, "Around ", this.link(known)),
      h(
        "button",
        { type: "button", class: "button", onclick: () => this.events.asked({ around: "" }) },
        "All again",
      ),
    );
    return known.name;
  }

  private link({ process, name }: Pick<End, "process" | "name">): HTMLElement {
    return process === 0
      ? h("span", { class: "profile-long", title: name }, name)
      : linkButton(name, () => this.events.opened(process));
  }
}

const NOTHING: Communication = {
  ends: [],
  edges: [],
  passed: { ends: 0, edges: 0, count: 0, bytes: 0 },
  all: { ends: 0, edges: 0, count: 0, bytes: 0 },
};

interface Field {
  root: HTMLElement;
  input: HTMLInputElement;
}

function field(before: string, unit: string): Field {
  const input = h("input", {
    class: "input num",
    type: "number",
    min: 0,
    step: 1,
    inputmode: "numeric",
    placeholder: "0",
    "aria-label": `At least so many ${unit}`,
  });
  return { root: h("label", {}, before, input, unit), input };
}

const edgesTable = (
  end: (key: string) => End | undefined,
  link: (end: Pick<End, "process" | "name">) => HTMLElement,
): Table<MessageEdge> => {
  const of = (key: string) => end(key) ?? { process: 0, name: key };
  return table<MessageEdge>({
    caption: "Messages between those of the graph",
    id: ({ from, to }) => JSON.stringify([from, to]),
    order: { key: "count", direction: "descending" },
    maxHeight: "26rem",
    empty: "No answer yet.",
    columns: [
      {
        key: "from",
        label: "From",
        value: (row) => of(row.from).name,
        show: (row) => link(of(row.from)),
      },
      { key: "to", label: "To", value: (row) => of(row.to).name, show: (row) => link(of(row.to)) },
      measure("count", "Messages", (row) => row.count, count, { width: "6rem", narrow: "5.4rem" }),
      measure("bytes", "Bytes", (row) => row.bytes, bytes, {
        width: "5.6rem",
        narrow: "5rem",
        hint: "In external format",
      }),
      measure("mean", "Mean", (row) => row.bytes / row.count, bytes, {
        width: "5.2rem",
        wide: true,
        hint: "Bytes of a message on average",
      }),
    ],
  });
};
