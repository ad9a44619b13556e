// SPDX-License-Identifier: Apache-2.0
// One chart of a front page: what it shows, and the buttons that move it or take it away.
import { type Chart, chart } from "../../lib/chart";
import { h, set, text as setText } from "../../lib/dom";
import { withUnit } from "../../lib/format";
import type { FrontChart, Metric, Series } from "../../model/protocol";
import type { Ctx } from "../../ui/ctx";
import type { IconName } from "../../ui/icons";
import { seekShown } from "../../ui/period";
import { about, lines, placeText } from "./model";
import { iconButton } from "../../ui/parts";

export interface CardActions {
  move(by: -1 | 1): void;
  remove(): void;
}

export class ChartCard {
  readonly root: HTMLElement;
  private readonly chart: Chart | null;
  private readonly note = h("p", { class: "note", hidden: true });
  private readonly earlier: HTMLButtonElement;
  private readonly later: HTMLButtonElement;

  constructor(
    ctx: Ctx,
    readonly of: FrontChart,
    private readonly metric: Metric | undefined,
    actions: CardActions,
  ) {
    const title = `${of.metric}, ${placeText(of.place)}`;
    const button = (label: string, name: IconName, run: () => void) =>
      iconButton(name, label, run, { "aria-label": `${label}: ${title}` });
    this.earlier = button("Earlier", "left", () => actions.move(-1));
    this.later = button("Later", "right", () => actions.move(1));
    const share = metric?.unit === "share";
    this.chart =
      metric === undefined
        ? null
        : chart({
            title,
            format: (value) => withUnit(value, metric.unit),
            base: metric.unit.startsWith("B") ? 1024 : 1000,
            ...(share ? { max: 1, fixed: true } : {}),
            onPick: (t) => seekShown(ctx, t),
          });
    if (metric === undefined)
      this.say(
        `There is no metric ${of.metric} any more: the configuration of the monitor names it.`,
      );
    this.root = h(
      "section",
      { class: "card metric-card", "aria-label": title },
      h(
        "div",
        { class: "card-head" },
        h(
          "div",
          {},
          h("h2", {}, of.metric, h("span", { class: "muted metric-place" }, placeText(of.place))),
          metric === undefined ? null : h("p", { class: "muted" }, about(metric, of.place)),
        ),
        h(
          "div",
          { class: "card-tools metric-tools" },
          this.earlier,
          this.later,
          button("Remove", "close", () => actions.remove()),
        ),
      ),
      this.chart?.root,
      this.note,
    );
  }

  /** At the ends there is nowhere to go. */
  place(index: number, count: number): void {
    set(this.earlier, "disabled", index === 0);
    set(this.later, "disabled", index === count - 1);
  }

  focus(which: "earlier" | "later"): void {
    const wanted = which === "earlier" ? this.earlier : this.later;
    const other = which === "earlier" ? this.later : this.earlier;
    (wanted.disabled ? other : wanted).focus();
  }

  draw(answer: Series, range: { from: number; to: number; mark: number | null }): void {
    const { series, more } = lines(answer.columns, this.of.metric);
    this.chart?.draw({ t: answer.t, series, ...range });
    this.say(
      more > 0 ? `${more} more series are not drawn: choose one by name, ${this.example()}.` : "",
    );
  }

  say(text: string): void {
    this.note.hidden = text === "";
    setText(this.note, text);
  }

  /** Whether it can be asked for at all. */
  get isKnown(): boolean {
    return this.metric !== undefined;
  }

  destroy(): void {
    this.chart?.destroy();
    this.root.remove();
  }

  private example(): string {
    const tags = (this.metric?.tags ?? []).map((tag) => `${tag}="…"`).join(",");
    return `${this.of.metric}{${tags}}`;
  }
}
