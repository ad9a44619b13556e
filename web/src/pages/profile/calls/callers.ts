// SPDX-License-Identifier: Apache-2.0
// Who calls whom: functions as a table, and the chosen one between its callers and what it calls.
import { cellBar } from "../../../lib/bars";
import { children as fill, h, s, styled, text as setText } from "../../../lib/dom";
import { count, share } from "../../../lib/format";
import { type Table, table } from "../../../lib/table";
import { card } from "../../../ui/parts";
import type { Calls, CallGraph, Func } from "../answers";
import { around, type Around, atLeast, lines, type Neighbour, within } from "./callers-model";
import { lasting } from "../range";
import { sourceButton } from "./source";
import { measure } from "../../../lib/columns";
import { linkButton } from "../parts";

/** Neighbours that are drawn on a side; how high each is. */
const MOST = 14;
const ROW = 34;
const NO_GRAPH: CallGraph = {
  functions: [],
  edges: [],
  names: {},
  functions_left: 0,
  edges_left: 0,
};

export class CallersCard {
  readonly root: HTMLElement;
  private readonly says = h("p", { class: "profile-says muted num", role: "status" });
  private readonly picture = h("div", { class: "calls-around", "data-testid": "profile-around" });
  private readonly least = h("input", {
    class: "input calls-least",
    type: "number",
    min: 0,
    max: 100,
    step: "any",
    value: "0",
    "aria-label": "At least so many per cent of the time",
  });
  private readonly table: Table<Func>;
  private graph: CallGraph = NO_GRAPH;
  private isAnswered = false;
  private ns = 0;
  private of = "";
  private chosen: number | null = null;

  constructor(
    private readonly events: {
      chosen(function_: number): void;
      failed(message: string): void;
    },
  ) {
    this.table = table<Func>({
      caption: "Functions",
      id: (row) => String(row.function),
      order: { key: "all", direction: "descending" },
      maxHeight: "26rem",
      empty: "No answer yet.",
      onChoose: (row) => events.chosen(row.function),
      columns: [
        {
          key: "name",
          label: "Function",
          value: (row) => row.name,
          show: (row) => h("span", { class: "lines", title: row.name }, row.name),
        },
        measure("calls", "Calls", (row) => row.calls, count, { width: "6rem", narrow: "4.2rem" }),
        measure("own", "Own", (row) => row.own, lasting, {
          width: "6.4rem",
          narrow: "4.6rem",
          hint: "Time in the function itself",
        }),
        {
          key: "all",
          label: "With calls",
          hint: "Time in the function and in what it calls",
          value: (row) => row.all,
          show: (row) => cellBar(row.all / Math.max(1, this.ns), lasting(row.all)),
          numeric: true,
          width: "8rem",
          narrow: "5.4rem",
        },
        {
          key: "within",
          label: "In this part",
          hint: "The share of all its time in the recording that is in the part shown",
          value: within,
          show: (row) => {
            const part = within(row);
            return part === null ? "–" : cellBar(part, share(part));
          },
          numeric: true,
          wide: true,
          width: "8rem",
        },
      ],
    });
    this.least.addEventListener("input", () => this.draw());
    this.root = card(
      "Who calls whom",
      {
        hint: "Choose a function to see its callers and what it calls. The time of a recursion goes to the caller of the outermost call.",
        tools: [
          h("label", { class: "calls-filter muted" }, "at least ", this.least, " % of the time"),
        ],
        testid: "profile-callers",
      },
      this.says,
      this.picture,
      this.table.root,
    );
  }

  show(calls: Calls, of: string): void {
    this.graph = calls.graph;
    this.ns = calls.ns;
    this.of = of;
    this.isAnswered = true;
    this.table.empty("No function was called in this part.");
    this.draw();
  }

  /** There is no answer, for this reason. */
  fail(message: string): void {
    this.graph = NO_GRAPH;
    this.isAnswered = false;
    this.table.empty("No answer.");
    this.table.rows([]);
    fill(this.picture);
    setText(this.says, message);
  }

  choose(function_: number | null): void {
    if (function_ === this.chosen) return;
    this.chosen = function_;
    this.draw();
  }

  private get share(): number {
    const percent = Number(this.least.value);
    return Number.isFinite(percent) ? Math.min(100, Math.max(0, percent)) / 100 : 0;
  }

  private draw(): void {
    if (!this.isAnswered) return;
    const { graph } = this;
    const rows = atLeast(graph, this.share, this.ns);
    const left = graph.functions.length - rows.length;
    const out = [
      left > 0 ? `${count(left)} ${one(left, "function has", "functions have")} less time` : "",
      graph.functions_left > 0
        ? `${count(graph.functions_left)} with least time were left out by the server`
        : "",
      graph.edges_left > 0 ? `so were ${count(graph.edges_left)} pairs of functions` : "",
    ].filter((text) => text !== "");
    setText(
      this.says,
      `${count(rows.length)} ${one(rows.length, "function", "functions")} ${this.of}` +
        (out.length > 0 ? `; ${out.join("; ")}` : "") +
        ".",
    );
    this.table.rows(rows);
    // Without a choice the one that has most of the time, and was called.
    const shown =
      graph.functions.find((row) => row.function === this.chosen) ??
      (this.chosen === null ? (rows.find(({ calls }) => calls > 0) ?? rows[0]) : undefined);
    this.table.mark(shown === undefined ? null : String(shown.function));
    if (shown !== undefined) this.around(shown);
    else if (this.chosen === null) fill(this.picture);
    else
      fill(
        this.picture,
        h(
          "p",
          { class: "muted" },
          graph.functions_left > 0
            ? "The chosen function is not among those with most time, of which the server told."
            : "The chosen function was not called in this part.",
        ),
      );
  }

  private around(func: Func): void {
    const near = around(this.graph, func.function, this.share, this.ns);
    fill(
      this.picture,
      this.side("Callers", near.callers, near.hidden.callers, func, "callers"),
      this.edges(near.callers, "callers"),
      this.middle(func, near),
      this.edges(near.callees, "callees"),
      this.side("What it calls", near.callees, near.hidden.callees, func, "callees"),
    );
  }

  private middle(func: Func, near: Around): HTMLElement {
    const part = within(func);
    return h(
      "div",
      { class: "calls-middle" },
      h("h3", { title: func.name }, func.name),
      h(
        "p",
        { class: "num" },
        `${func.calls === 0 ? "no call of it was recorded" : times(func.calls)}${near.itself > 0 ? `, ${times(near.itself)} by itself` : ""}`,
      ),
      h("p", { class: "num" }, `own ${lasting(func.own)}`),
      h(
        "p",
        { class: "num" },
        `with calls ${lasting(func.all)}, ${share(func.all / Math.max(1, this.ns))}`,
      ),
      part === null || func.whole === null
        ? null
        : h(
            "p",
            { class: "num" },
            `${share(part)} of its ${lasting(func.whole.all)} in the recording`,
          ),
      sourceButton(func.function, "Source", this.events.failed, "button"),
    );
  }

  private side(
    title: string,
    neighbours: readonly Neighbour[],
    hidden: number,
    func: Func,
    kind: "callers" | "callees",
  ): HTMLElement {
    const more = neighbours.length - MOST;
    const notes = [
      neighbours.length === 0 && hidden === 0 ? "none that was recorded" : "",
      more > 0 ? `${count(more)} more` : "",
      hidden > 0 ? `${count(hidden)} with less time` : "",
    ].filter((text) => text !== "");
    return h(
      "div",
      { class: `calls-side calls-${kind}` },
      h("h3", {}, title),
      h("ul", {}, ...neighbours.slice(0, MOST).map((near) => this.neighbour(near, func))),
      notes.length > 0 ? h("p", { class: "muted" }, notes.join(", ")) : null,
    );
  }

  private neighbour(near: Neighbour, func: Func): HTMLElement {
    const known = this.graph.functions.some((row) => row.function === near.function);
    const words = `${near.name}: ${times(near.calls)}, ${lasting(near.ns)}, ${share(near.ns / Math.max(1, func.all))} of the time of ${func.name}`;
    return h(
      "li",
      { title: words },
      known
        ? linkButton(near.name, () => this.events.chosen(near.function), words)
        : h("span", { class: "calls-name muted" }, near.name),
      h("span", { class: "calls-time muted num" }, lasting(near.ns)),
      h("span", { class: "calls-count num" }, near.calls === 0 ? "–" : `${count(near.calls)} ×`),
    );
  }

  private edges(neighbours: readonly Neighbour[], kind: "callers" | "callees"): Element {
    const drawn = neighbours.slice(0, MOST);
    const height = Math.max(1, drawn.length) * ROW;
    const [out, middle] = kind === "callers" ? [0, 100] : [100, 0];
    return styled(
      h(
        "div",
        { class: "calls-edges", "aria-hidden": "true" },
        s(
          "svg",
          { viewBox: `0 0 100 ${height}`, preserveAspectRatio: "none" },
          ...lines(drawn, ROW).map(({ y, share: part }) =>
            s("path", {
              d: `M ${out} ${y} C 50 ${y}, 50 ${height / 2}, ${middle} ${height / 2}`,
              "stroke-width": 1 + 7 * part,
            }),
          ),
        ),
      ),
      "--rows",
      `${height}px`,
    );
  }
}

const one = (n: number, single: string, many: string): string => (n === 1 ? single : many);

const times = (n: number): string => `${count(n)} ${one(n, "call", "calls")}`;
