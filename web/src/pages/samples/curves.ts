// SPDX-License-Identifier: Apache-2.0
// What processes and schedulers did over the whole time, and the choice of a part of it.
import { h, set, text as setText } from "../../lib/dom";
import { number, share } from "../../lib/format";
import { type Chart, chart } from "../../lib/chart";
import { card, iconButton } from "../../ui/parts";
import type { Shares } from "./answers";
import { clampColumns, type Columns, moved, partOf, rangeText } from "./model";

export class Curves {
  readonly root: HTMLElement;
  private readonly processes: Chart;
  private readonly awake: Chart;
  private readonly queue: Chart;
  private readonly first = slider("From");
  private readonly after = slider("To");
  private readonly says = h("p", { class: "profile-says num", role: "status" });
  private columns: Columns = { first: 0, after: 1 };
  private count = 1;
  private duration = 1;

  constructor(
    private readonly began: number,
    tools: HTMLElement[],
    private readonly chosen: (columns: Columns) => void,
  ) {
    const onPick = (t: number) => {
      const column = Math.floor(((t - this.began) * 1e6 * this.count) / this.duration + 1e-6);
      this.choose(clampColumns(column, column + 1, this.count));
    };
    this.processes = chart({
      title: "Processes that run, wait for a scheduler, and collect garbage",
      format: number,
      stacked: true,
      height: 130,
      onPick,
    });
    this.awake = chart({
      title: "Schedulers awake",
      format: share,
      max: 1,
      fixed: true,
      height: 130,
      onPick,
    });
    this.queue = chart({ title: "Messages in mailboxes", format: number, height: 130, onPick });

    for (const one of [this.first, this.after])
      one.input.addEventListener("input", () => this.slid(one === this.first));
    this.root = card(
      "Over time",
      {
        hint: "The tables are of the chosen part: choose a place in a picture, or move its ends.",
        tools,
        testid: "samples-curves",
      },
      h(
        "div",
        { class: "samples-charts" },
        titled("Processes that run or wait for a scheduler", this.processes.root),
        titled("Schedulers awake", this.awake.root),
        titled("Messages in mailboxes", this.queue.root),
      ),
      h(
        "div",
        { class: "samples-part", role: "group", "aria-label": "Part of the time" },
        this.first.root,
        this.after.root,
        h(
          "div",
          { class: "row" },
          iconButton("left", "Earlier ([)", () => this.move(-1)),
          iconButton("right", "Later (])", () => this.move(1)),
          iconButton("fit", "The whole time (Home)", () => this.all()),
        ),
      ),
      this.says,
    );
  }

  draw(curves: Shares["curves"], duration: number, columns: Columns): void {
    this.count = Math.max(1, curves.length);
    this.duration = Math.max(1, duration);
    this.show(columns);
    const t = curves.map(({ at }) => this.began + at / 1e6);
    const to = this.began + duration / 1e6;
    const of = (key: "running" | "runnable" | "collecting" | "awake" | "queue", label: string) => ({
      key,
      label,
      values: curves.map((column) => column[key]),
    });
    this.processes.draw({
      t,
      to,
      series: [
        of("running", "run"),
        of("runnable", "wait for a scheduler"),
        of("collecting", "collect garbage"),
      ],
    });
    this.awake.draw({ t, to, series: [of("awake", "awake")] });
    this.queue.draw({ t, to, series: [of("queue", "messages")] });
  }

  move(by: 1 | -1): void {
    this.choose(moved(this.columns, by, this.count));
  }

  all(): void {
    this.choose({ first: 0, after: this.count });
  }

  destroy(): void {
    for (const one of [this.processes, this.awake, this.queue]) one.destroy();
  }

  private choose(columns: Columns): void {
    this.show(columns);
    this.chosen(columns);
  }

  /** One end does not pass the other. */
  private slid(isFirst: boolean): void {
    const [first, after] = [Number(this.first.input.value), Number(this.after.input.value)];
    this.choose(
      isFirst
        ? clampColumns(Math.min(first, after - 1), after, this.count)
        : clampColumns(first, Math.max(after, first + 1), this.count),
    );
  }

  private show(columns: Columns): void {
    this.columns = columns;
    const { count, duration } = this;
    const part = partOf(columns, count, duration);
    for (const { input } of [this.first, this.after]) set(input, "max", count);
    this.first.input.value = String(columns.first);
    this.after.input.value = String(columns.after);
    const at = (column: number) => `${((duration * column) / count / 1e9).toFixed(1)} s`;
    for (const [{ input, said }, column] of [
      [this.first, columns.first],
      [this.after, columns.after],
    ] as const) {
      set(input, "aria-valuetext", at(column));
      setText(said, at(column));
    }
    setText(this.says, `${rangeText(part, duration)}.`);
  }
}

const titled = (title: string, content: HTMLElement): HTMLElement =>
  h("div", {}, h("h3", {}, title), content);

function slider(label: string): { root: HTMLElement; input: HTMLInputElement; said: HTMLElement } {
  const input = h("input", { type: "range", min: 0, step: 1, "aria-label": label });
  const said = h("span", { class: "num muted", "aria-hidden": "true" });
  return {
    root: h("label", { class: "samples-end" }, h("span", {}, label), input, said),
    input,
    said,
  };
}
