// SPDX-License-Identifier: Apache-2.0
// Front pages: people put charts together, give them a name, and share them by the address.
import type { Ctx, MountedPage, Page } from "../../ui/ctx";
import type { Change } from "../../store/signals";
import { arrange, h, set, text as setText } from "../../lib/dom";
import type { Front, FrontChart, Metric } from "../../model/protocol";
import { type Choice, choice, note } from "../../ui/parts";
import { options } from "../../ui/options";
import { POINTS, spanOf, stoppedAt } from "../../ui/period";
import { Polled } from "../../ui/polled";
import { TimeWatch } from "../../ui/time-watch";
import { Adder } from "./adder";
import { ChartCard } from "./chart-card";
import {
  chartsFor,
  type Draft,
  draft,
  encodeCharts,
  metricOf,
  MOST_CHARTS,
  moved,
  tagsOf,
  windowMs,
  WINDOWS,
  type WindowName,
} from "./model";
import { messageOf } from "../../lib/format";
import "../../styles/data.css";
import "../../styles/charts.css";
import "../../styles/findings.css";
import "./metrics.css";

const LONGEST_REFRESH_MS = 60_000;
/** How much a server without an archive keeps, in memory. */
const LONGEST_HISTORY_MS = 86_400_000;

export const page: Page = {
  mount: (root, ctx) => new MetricsPage(root, ctx),
};

class MetricsPage implements MountedPage {
  private readonly head = h("p", { class: "muted", role: "status" });
  private readonly select = h("select", { class: "select", "aria-label": "Front page" });
  private readonly tags = h("select", { class: "select", "aria-label": "Charts with a tag" });
  private readonly name = h("input", {
    class: "input",
    type: "text",
    maxlength: 60,
    placeholder: "Name of the page",
    "aria-label": "Name under which the page is saved",
  });
  private readonly save = h(
    "button",
    { type: "button", class: "button button-primary", click: () => void this.saved() },
    "Save",
  );
  private readonly discard = h(
    "button",
    { type: "button", class: "button", click: () => this.discarded() },
    "Discard changes",
  );
  private readonly remove = h(
    "button",
    { type: "button", class: "button", click: () => void this.deleted() },
    "Delete",
  );
  private readonly readOnly = note(
    "This dashboard is read-only: a page that you put together is in its address, which can be shared; who starts it with --write lets people save it under a name.",
  );
  private readonly problem = note("");
  private readonly grid = h("div", { class: "metric-grid", "data-testid": "charts" });
  private readonly windows: Choice<WindowName>;
  private readonly adder: Adder;
  private readonly time: TimeWatch;
  private readonly polled: Polled<void>;
  private readonly unkey: () => void;
  private metrics: Metric[] = [];
  private fronts: Front[] = [];
  private loaded = false;
  private cards: ChartCard[] = [];
  /** Where in the page each of them is. */
  private places: readonly number[] = [];
  private drawn = "";

  constructor(
    private readonly root: HTMLElement,
    private readonly ctx: Ctx,
  ) {
    this.windows = choice<WindowName>(
      "Time shown",
      WINDOWS.filter(([, , ms]) => ctx.store.hello?.archive || ms <= LONGEST_HISTORY_MS).map(
        ([value, title]) => [value, title] as const,
      ),
      "hour",
      (value) => this.change({ window: value }),
    );
    this.adder = new Adder(ctx, (added) => this.add(added));
    this.select.addEventListener("change", () =>
      ctx.go("metrics", this.select.value === "" ? null : this.select.value),
    );
    this.tags.addEventListener("change", () => this.change({ tag: this.tags.value }));
    this.name.addEventListener("keydown", (event) => {
      if (event.key === "Enter") void this.saved();
    });
    root.append(
      h(
        "div",
        { class: "page-head" },
        h("div", {}, h("h1", {}, "Metrics"), this.head),
        h(
          "div",
          { class: "card-tools" },
          this.select,
          this.tags,
          this.windows.root,
          this.name,
          this.save,
          this.discard,
          this.remove,
        ),
      ),
      this.readOnly,
      this.problem,
      this.grid,
      this.adder.root,
    );
    this.unkey = ctx.keys.add({
      key: "/",
      text: "Add a chart",
      section: "This page",
      run: () => this.adder.focus(),
    });
    this.time = new TimeWatch(ctx, () => this.polled.refresh());
    this.polled = new Polled<void>(ctx, {
      everyMs: () =>
        Math.min(LONGEST_REFRESH_MS, Math.max(2000, windowMs(this.draft().window) / POINTS)),
      ask: () => this.ask(),
      show: () => {},
    });
    this.draw();
    void this.load();
  }

  update(change: Change): void {
    this.time.update(change);
    if (change.has("topology")) this.adder.update();
    if (change.has("hello")) void this.load();
    if (change.has("route") || change.has("hello")) this.draw();
  }

  destroy(): void {
    this.time.destroy();
    this.polled.destroy();
    this.unkey();
    for (const card of this.cards) card.destroy();
    this.root.replaceChildren();
  }

  // ------------------------------------------------------------------ what there is

  private async load(): Promise<void> {
    if (this.ctx.store.connection !== "connected") return;
    try {
      const [metrics, fronts] = await Promise.all([
        this.ctx.store.request("metrics", {}),
        this.ctx.store.request("fronts", {}),
      ]);
      this.metrics = metrics.metrics;
      this.fronts = fronts.pages.sort((a, b) => (a.name < b.name ? -1 : 1));
      this.loaded = true;
      setText(this.problem, fronts.problem ?? "");
      this.problem.hidden = fronts.problem === null;
      this.drawn = "";
      this.offered = null;
      this.draw();
    } catch (error) {
      this.ctx.toast(messageOf(error));
    }
  }

  private get front(): Front | undefined {
    return this.fronts.find((one) => one.name === this.ctx.route.arg);
  }

  private draft(): Draft {
    return draft(this.ctx.route.query, this.front, this.metrics);
  }

  // ------------------------------------------------------------------ changes

  private get tag(): string {
    return this.ctx.route.query["tag"] ?? "";
  }

  private change(query: Record<string, string>): void {
    this.ctx.setQuery(query);
    this.draw();
  }

  private put(charts: readonly FrontChart[]): void {
    // An empty field would be none at all.
    this.change({ charts: charts.length === 0 ? "none" : encodeCharts(charts) });
  }

  private add(added: FrontChart): void {
    const { charts } = this.draft();
    if (charts.length >= MOST_CHARTS)
      return this.ctx.toast(`A page has at most ${MOST_CHARTS} charts: make another`);
    // One that is not for the tag would not be seen.
    if (chartsFor([added], this.metrics, this.tag).length === 0) this.ctx.setQuery({ tag: "" });
    this.put([...charts, added]);
    this.ctx.announce(`${added.metric} was added`);
    this.cards.at(-1)?.root.scrollIntoView({ block: "nearest" });
  }

  private async saved(): Promise<void> {
    const { charts, window } = this.draft();
    const name = this.name.value.trim();
    if (name === "") {
      this.name.focus();
      return this.ctx.toast("Give the page a name first", "info");
    }
    const rev = this.front?.name === name ? this.front.rev : 0;
    await this.done("save_front", { page: { name, window, charts, rev } }, name, "saved");
  }

  private async deleted(): Promise<void> {
    const front = this.front;
    if (front === undefined || !confirm(`Delete the page ${front.name} for everybody?`)) return;
    await this.done("delete_front", { name: front.name, rev: front.rev }, null, "deleted");
  }

  private async done<O extends "save_front" | "delete_front">(
    op: O,
    args: Parameters<typeof this.ctx.store.request<O>>[1],
    then: string | null,
    word: string,
  ): Promise<void> {
    try {
      await this.ctx.store.request(op, args);
      this.ctx.toast(`The page was ${word}`, "info");
      await this.load();
      this.ctx.go("metrics", then);
    } catch (error) {
      this.ctx.toast(messageOf(error));
      await this.load();
    }
  }

  private discarded(): void {
    this.change({ charts: "", window: "" });
  }

  // ------------------------------------------------------------------ drawing

  private draw(): void {
    const { charts, window, changed } = this.draft();
    const { hello } = this.ctx.store;
    const front = this.front;
    const writable = hello?.writable === true;
    const gone = this.loaded && this.ctx.route.arg !== null && front === undefined;
    this.windows.choose(window);
    options(
      this.select,
      "Overview",
      this.fronts.map((one) => one.name),
      front?.name ?? "",
    );
    this.readOnly.hidden = writable || hello === null;
    for (const element of [this.name, this.save]) element.hidden = !writable;
    this.remove.hidden = !writable || front === undefined;
    this.discard.hidden = !changed;
    if (this.shownName !== (front?.name ?? ""))
      this.name.value = this.shownName = front?.name ?? "";
    set(this.save, "disabled", !changed && front !== undefined);
    const shown = chartsFor(charts, this.metrics, this.tag);
    const some = shown.length < charts.length ? `${shown.length} of ` : "";
    setText(
      this.head,
      gone
        ? `There is no page ${this.ctx.route.arg}: it may have been deleted.`
        : `${front?.name ?? "Overview"}: ${some}${charts.length} ${charts.length === 1 ? "chart" : "charts"}${changed ? ", changed and not saved" : ""}`,
    );
    this.offerTags();
    this.drawCards(charts, shown);
    this.polled.refresh();
  }

  private shownName = "";
  /** The tag that was chosen when the fields were filled last. */
  private offered: string | null = null;

  private offerTags(): void {
    const tags = tagsOf(this.metrics);
    // An address may have one that no metric has any more.
    const all = this.tag === "" || tags.includes(this.tag) ? tags : [...tags, this.tag];
    this.tags.hidden = all.length === 0;
    if (!this.loaded || this.offered === this.tag) return;
    this.offered = this.tag;
    options(this.tags, "All tags", all, this.tag);
    this.adder.offer(this.metrics, this.tag);
  }

  /** Those of the page that are for the tag, by their places in it. */
  private drawCards(charts: readonly FrontChart[], shown: readonly number[]): void {
    const key = `${encodeCharts(charts)} ${shown.join()}`;
    if (key === this.drawn || !this.loaded) return;
    this.drawn = key;
    this.places = shown;
    // One that stays is not drawn anew, and keeps the focus.
    const left = [...this.cards];
    this.cards = shown.map((place) => {
      const one = charts[place] as FrontChart;
      const at = left.findIndex(
        (card) =>
          encodeCharts([card.of]) === encodeCharts([one]) &&
          card.isKnown === (metricOf(this.metrics, one.metric) !== undefined),
      );
      const [kept] = at < 0 ? [] : left.splice(at, 1);
      const card: ChartCard =
        kept ??
        new ChartCard(this.ctx, one, metricOf(this.metrics, one.metric), {
          move: (by) => this.move(card, by),
          remove: () => this.taken(card),
        });
      return card;
    });
    for (const card of left) card.destroy();
    this.cards.forEach((card, i) => card.place(i, this.cards.length));
    arrange(
      this.grid,
      this.cards.length > 0
        ? this.cards.map((card) => card.root)
        : [
            h(
              "p",
              { class: "muted" },
              charts.length === 0
                ? "This page has no charts: add some below."
                : `No chart of this page is for ${this.tag}: add some below, or choose all tags.`,
            ),
          ],
    );
  }

  private taken(card: ChartCard): void {
    const place = this.places[this.cards.indexOf(card)];
    this.put(this.draft().charts.filter((_, i) => i !== place));
  }

  private move(card: ChartCard, by: -1 | 1): void {
    const at = this.cards.indexOf(card);
    const [from, to] = [this.places[at], this.places[at + by]];
    if (from === undefined || to === undefined) return;
    this.put(moved(this.draft().charts, from, to));
    // Moving an element takes the focus from it.
    card.focus(by < 0 ? "earlier" : "later");
  }

  /** Asks for one chart after the other: a month of many nodes takes a while. */
  private async ask(): Promise<void> {
    if (!this.loaded) return;
    const { window } = this.draft();
    const range = spanOf(this.ctx, windowMs(window));
    for (const card of [...this.cards]) {
      if (!card.isKnown || !this.cards.includes(card)) continue;
      try {
        const answer = await this.ctx.store.request("series", {
          of: { kind: "over", ...card.of },
          ...range,
          points: POINTS,
        });
        card.draw(answer, { ...range, mark: stoppedAt(this.ctx) });
      } catch (error) {
        card.draw({ t: [], columns: {} }, { ...range, mark: null });
        card.say(messageOf(error));
      }
    }
  }
}
