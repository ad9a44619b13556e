// SPDX-License-Identifier: Apache-2.0
// Samples: what `bin/sderl prof sample` saw processes do, as shares with intervals, over time.
import type { Ctx, Page } from "../../ui/ctx";
import { h, set, text as setText } from "../../lib/dom";
import { count, lasting, share, messageOf } from "../../lib/format";
import { RecordedPage } from "../../ui/recorded";
import { card, type Choice, choice, searchKey } from "../../ui/parts";
import { type About, getAbout, getShares, type Shares } from "./answers";
import { Curves } from "./curves";
import { type Columns, fromQuery, partOf, problems, rowsText } from "./model";
import { OverallCard } from "./overall";
import {
  kindsTable,
  nodesTable,
  placesTable,
  schedulersTable,
  statesTable,
  threadsTable,
} from "./tables";
import "../../styles/data.css";
import "../../styles/charts.css";
import "../../styles/recorded.css";
import "./samples.css";

type Tab = "kinds" | "functions" | "waits" | "states" | "overall" | "nodes";
const TABS: readonly Tab[] = ["kinds", "functions", "waits", "states", "overall", "nodes"];

const ROWS = 500;
const LATER_MS = 200;
const ALL = "";

class Shown {
  private readonly curves: Curves;
  private readonly overall = new OverallCard();
  private readonly tabs: Choice<Tab>;
  private readonly cards: Record<Tab, HTMLElement>;
  private readonly kinds = kindsTable((kind) => this.ctx.setQuery({ kind }));
  private readonly functions = placesTable(
    "Where processes run or wait for a scheduler",
    "Of the time of those that ran or could have run, with an interval of 95 %",
  );
  private readonly waits = placesTable(
    "Where processes wait",
    "Of the time of those that waited, with an interval of 95 %",
  );
  private readonly nodes = nodesTable((node) => this.ctx.setQuery({ node }));
  private readonly states = statesTable();
  private readonly schedulers;
  private readonly threads;
  private readonly node = h("select", { class: "select", "aria-label": "Node" });
  private readonly chosen = h("div", { class: "row samples-chosen" });
  private readonly says = { kinds: status(), functions: status(), waits: status() };
  private readonly release: (() => void)[];
  private timer: ReturnType<typeof setTimeout> | undefined;
  private asked = 0;
  private of: string | null = null;
  private columns = 0;

  constructor(
    private readonly root: HTMLElement,
    private readonly ctx: Ctx,
    private readonly about: About,
  ) {
    const several = about.nodes.length > 1;
    this.schedulers = schedulersTable(several);
    this.threads = threadsTable(several);
    this.node.replaceChildren(
      ...[[ALL, "All nodes"] as const, ...about.nodes.map(({ node }) => [node, node] as const)].map(
        ([value, text]) => h("option", { value }, text),
      ),
    );
    this.node.addEventListener("change", () => ctx.setQuery({ node: this.node.value }));
    this.curves = new Curves(about.nodes[0]?.began ?? 0, several ? [this.node] : [], (columns) =>
      this.range(columns),
    );
    this.tabs = choice<Tab>(
      "Shown below the curves",
      [
        ["kinds", "Processes"],
        ["functions", "Functions"],
        ["waits", "Waits"],
        ["states", "States"],
        ["overall", "Node over time"],
        ...(several ? ([["nodes", "Nodes"]] as const) : []),
      ],
      "kinds",
      (tab) => ctx.setQuery({ tab: tab === "kinds" ? "" : tab }),
    );
    this.cards = {
      kinds: card(
        "Kinds of processes",
        {
          hint: "By their name, or the function where they began. Choose one, and curves, functions, waits and states are its own.",
          testid: "samples-kinds",
        },
        this.says.kinds,
        this.kinds.root,
      ),
      functions: card(
        "Where processes run or wait for a scheduler",
        { testid: "samples-functions" },
        this.says.functions,
        this.functions.root,
      ),
      waits: card(
        "Where processes wait",
        { testid: "samples-waits" },
        this.says.waits,
        this.waits.root,
      ),
      states: card(
        "States, schedulers and threads",
        { testid: "samples-states" },
        h(
          "div",
          { class: "samples-states" },
          h("div", {}, h("h3", {}, "States"), this.states.root),
          h("div", {}, h("h3", {}, "Schedulers"), this.schedulers.root),
          h("div", {}, h("h3", {}, "Threads, in the whole time"), this.threads.root),
        ),
      ),
      overall: this.overall.root,
      nodes: card(
        "Nodes",
        { hint: "Choose one, and all else is of it alone.", testid: "samples-nodes" },
        this.nodes.root,
      ),
    };
    root.replaceChildren(
      this.head(),
      h(
        "div",
        { class: "profile-problems", role: "note", hidden: problems(about).length === 0 },
        ...problems(about).map((problem) => h("p", { class: "note" }, problem)),
      ),
      this.curves.root,
      h("div", { class: "row profile-tabs" }, this.tabs.root),
      this.chosen,
      ...TABS.map((tab) => this.cards[tab]),
    );
    const key = (name: string, text: string, run: () => void) =>
      ctx.keys.add({ key: name, text, section: "Samples", run });
    this.release = [
      searchKey(ctx, root, "Filter"),
      key("[", "Earlier", () => this.curves.move(-1)),
      key("]", "Later", () => this.curves.move(1)),
      key("Home", "The whole time", () => this.curves.all()),
    ];
    this.routed();
  }

  routed(): void {
    const { query } = this.ctx.route;
    const tab = this.tab;
    this.tabs.choose(tab);
    for (const one of TABS) this.cards[one].hidden = one !== tab;
    this.node.value = query["node"] ?? ALL;
    const kind = query["kind"] ?? "";
    this.chosen.hidden = kind === "" || tab === "nodes" || tab === "overall";
    this.chosen.replaceChildren(
      h("span", {}, "Only ", h("strong", {}, kind)),
      h(
        "button",
        { type: "button", class: "button", onclick: () => this.ctx.setQuery({ kind: "" }) },
        "All processes",
      ),
    );
    this.kinds.mark(kind === "" ? null : kind);
    this.nodes.mark(query["node"] ?? null);
    const of = ["from", "to", "node", "kind"].map((field) => query[field] ?? "").join("\n");
    if (of === this.of) return;
    const isFirst = this.of === null;
    this.of = of;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => void this.ask(), isFirst ? 0 : LATER_MS);
  }

  destroy(): void {
    clearTimeout(this.timer);
    this.asked = -1;
    for (const release of this.release) release();
    this.curves.destroy();
    this.overall.destroy();
  }

  private get tab(): Tab {
    const tab = TABS.find((one) => one === this.ctx.route.query["tab"]) ?? "kinds";
    return tab === "nodes" && this.about.nodes.length < 2 ? "kinds" : tab;
  }

  private range(columns: Columns): void {
    const part = partOf(columns, this.columns, this.about.duration);
    this.ctx.setQuery({
      from: part === null ? "" : String(part.from),
      to: part === null ? "" : String(part.to),
    });
  }

  private async ask(): Promise<void> {
    const mine = (this.asked += 1);
    const { query } = this.ctx.route;
    const [from, to] = [Number(query["from"]), Number(query["to"])];
    const part =
      query["from"] !== undefined && from >= 0 && to > from
        ? { from: Math.floor(from), to: Math.ceil(to) }
        : null;
    const text = (field: string) => (query[field] === "" ? null : (query[field] ?? null));
    set(this.root, "aria-busy", true);
    try {
      const shares = await getShares({ part, node: text("node"), kind: text("kind") }, ROWS);
      if (mine === this.asked) this.draw(shares);
    } catch (error) {
      if (mine === this.asked) this.ctx.toast(messageOf(error));
    } finally {
      if (mine === this.asked) set(this.root, "aria-busy", null);
    }
  }

  private draw(shares: Shares): void {
    const { duration } = this.about;
    this.columns = shares.curves.length;
    this.curves.draw(
      shares.curves,
      duration,
      fromQuery(this.ctx.route.query, this.columns, duration),
    );
    this.overall.draw(shares.overall, this.about.nodes[0]?.began ?? 0, duration);
    this.kinds.rows(shares.kinds);
    this.functions.rows(shares.functions);
    this.waits.rows(shares.waits);
    this.states.rows(shares.states);
    this.schedulers.rows(
      shares.schedulers.filter(({ type, awake }) => type === "normal" || awake > 0.001),
    );
    this.threads.rows(shares.threads);
    this.nodes.rows(shares.nodes);
    setText(this.says.kinds, rowsText(shares.kinds.length, shares.kinds_all, "kinds"));
    setText(this.says.functions, rowsText(shares.functions.length, shares.functions_all, "places"));
    setText(this.says.waits, rowsText(shares.waits.length, shares.waits_all, "places"));
  }

  private head(): HTMLElement {
    const { nodes, duration } = this.about;
    const [first] = nodes;
    const sum = (of: (node: About["nodes"][number]) => number) =>
      nodes.reduce((all, node) => all + of(node), 0);
    const words = [
      lasting(duration),
      `${count(sum(({ looks }) => looks))} looks at ${count(sum(({ processes }) => processes))} processes`,
      `the sampler was at work in ${share(Math.max(...nodes.map((node) => node.own_share)))} of the time`,
      first === undefined || first.otp === "" ? "" : `OTP ${first.otp}`,
    ];
    return h(
      "div",
      { class: "page-head" },
      h(
        "div",
        {},
        h(
          "h1",
          {},
          nodes.length === 1 ? `Samples of ${first?.node}` : `Samples of ${nodes.length} nodes`,
        ),
        h("p", { class: "muted" }, words.filter((word) => word !== "").join(" · ")),
      ),
    );
  }
}

const status = () => h("p", { class: "profile-says muted num", role: "status" });

export const page: Page = {
  mount: (root, ctx) =>
    new RecordedPage<Shown>(root, ctx, {
      part: "samples",
      open: async () => {
        const about = await getAbout();
        return () => new Shown(root, ctx, about);
      },
      nothing: [
        "No samples are open here",
        "`bin/sderl prof sample NODE --out FILE` samples a node, and `bin/sderl prof open FILE` shows the samples.",
      ],
      failed: "The samples do not answer",
    }),
};
