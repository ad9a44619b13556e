// SPDX-License-Identifier: Apache-2.0
// The run queues of one process: on which scheduler it was when, in the part of the run that is shown.
import { children as fill, h, s } from "../../../lib/dom";
import { count } from "../../../lib/format";
import { getStays, type Stays } from "../answers";
import { lasting, type Range } from "../range";
import { boxes } from "./stays-model";
import { Still } from "../still";
import { list } from "../parts";

const MOST = 1000;
const ROW = 10;

export class StaysPart {
  readonly root = h("div", { class: "profile-stays", "data-testid": "profile-stays" });
  private process: number | null = null;
  private readonly still = new Still(
    () => this.root,
    (message) => fill(this.root, h("h3", {}, "Schedulers"), h("p", { class: "muted" }, message)),
  );

  constructor(private readonly name: (scheduler: number) => string) {}

  /** Asks when the range has stood still for a moment. */
  show(process: number | null, range: Range): void {
    if (process !== this.process) {
      // What is under way is of another process.
      this.still.forget();
      fill(this.root);
    }
    this.process = process;
    if (process === null) return;
    this.still.ask(`${process} ${range.from}-${range.to}`, async () => {
      const answer = await getStays(process, range.from, range.to, MOST);
      return () => this.draw(answer, range);
    });
  }

  destroy(): void {
    this.still.forget();
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

    fill(
      this.root,
      h("h3", {}, "Schedulers"),
      picture,
      all > stays.length
        ? h("p", { class: "muted" }, `The longest ${count(stays.length)} of ${count(all)} stays`)
        : null,
      list(
        ["scheduler", "came", "times in", "ran"],
        schedulers.map((one) => [
          this.name(one.scheduler),
          count(one.stays),
          count(one.ins),
          lasting(one.ran),
        ]),
      ),
    );
  }
}
