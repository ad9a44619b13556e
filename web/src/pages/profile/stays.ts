// SPDX-License-Identifier: Apache-2.0
// The run queues of one process: on which scheduler it was when, in the part of the run that is shown.
import { children as fill, h, s, set } from "../../lib/dom";
import { count } from "../../lib/format";
import { getStays, type Stays } from "./answers";
import { lasting, type Range } from "./range";
import { boxes } from "./stays-model";

const LATER_MS = 400;
const MOST = 1000;
const ROW = 10;

export class StaysPart {
  readonly root = h("div", { class: "profile-stays", "data-testid": "profile-stays" });
  private process: number | null = null;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private asked = 0;
  private of = "";

  constructor(private readonly name: (scheduler: number) => string) {}

  /** Asks when the range has stood still for a moment. */
  show(process: number | null, range: Range): void {
    const of = `${process} ${range.from}-${range.to}`;
    if (of === this.of) return;
    if (process !== this.process) fill(this.root);
    this.process = process;
    this.of = of;
    // What is under way is of another process or part.
    this.asked += 1;
    clearTimeout(this.timer);
    if (process !== null) this.timer = setTimeout(() => void this.ask(process, range), LATER_MS);
  }

  destroy(): void {
    clearTimeout(this.timer);
    this.asked = -1;
  }

  private async ask(process: number, range: Range): Promise<void> {
    const mine = (this.asked += 1);
    set(this.root, "aria-busy", true);
    try {
      const answer = await getStays(process, range.from, range.to, MOST);
      if (mine === this.asked) this.draw(answer, range);
    } catch (error) {
      if (mine === this.asked)
        fill(
          this.root,
          h("h3", {}, "Schedulers"),
          h("p", { class: "muted" }, error instanceof Error ? error.message : String(error)),
        );
    } finally {
      if (mine === this.asked) set(this.root, "aria-busy", null);
    }
  }

  private draw({ schedulers, stays, count: all }: Stays, range: Range): void {
    if (schedulers.length === 0) {
      fill(
        this.root,
        h("h3", {}, "Schedulers"),
        h("p", { class: "muted" }, "It did not run in this part."),
      );
      return;
    }
    const rows = boxes(
      stays,
      schedulers.map(({ scheduler }) => scheduler),
      range,
    );
    const picture = s(
      "svg",
      {
        class: "profile-strip",
        width: "100%",
        height: schedulers.length * ROW,
        role: "img",
        "aria-label": `On which of ${schedulers.length} schedulers it was, over the part that is shown`,
      },
      ...rows.map(({ x, width, row }) =>
        s("rect", { x: `${x}%`, width: `${width}%`, y: row * ROW + 1, height: ROW - 2 }),
      ),
    );
    const cells = (tag: "td" | "th", row: readonly string[]) =>
      row.map((cell, i) => h(tag, { class: i === 0 ? null : "num" }, cell));
    fill(
      this.root,
      h("h3", {}, "Schedulers"),
      picture,
      all > stays.length
        ? h("p", { class: "muted" }, `The longest ${count(stays.length)} of ${count(all)} stays`)
        : null,
      h(
        "table",
        { class: "table profile-list" },
        h("thead", {}, h("tr", {}, ...cells("th", ["scheduler", "came", "times in", "ran"]))),
        h(
          "tbody",
          {},
          ...schedulers.map((one) =>
            h(
              "tr",
              {},
              ...cells("td", [
                this.name(one.scheduler),
                count(one.stays),
                count(one.ins),
                lasting(one.ran),
              ]),
            ),
          ),
        ),
      ),
    );
  }
}
