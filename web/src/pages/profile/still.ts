// SPDX-License-Identifier: Apache-2.0
// Questions to the server, such as those about the part of the time that is shown: each is asked once, and where one waits
// for it, when it has stood still for a moment. Of several answers only that to the last question is drawn.
import { set } from "../../lib/dom";
import { messageOf } from "../../lib/format";

const LATER_MS = 400;

/** Asks the server; what it gives draws the answer. */
export type Question = () => Promise<() => void>;

export class Still {
  private timer: ReturnType<typeof setTimeout> | undefined;
  private of = "";
  private isFirst = true;
  private asked = 0;

  /** `root` is busy while a question is under way; `failed` is told a message for a person. */
  constructor(
    private readonly root: () => Element,
    private readonly failed: (message: string) => void,
  ) {}

  /** Asks when `of` has stood still for a moment, and at once the first time; nothing while it is what was asked last. */
  ask(of: string, question: Question, waitMs = this.isFirst ? 0 : LATER_MS): void {
    if (of === this.of) return;
    this.isFirst = false;
    this.of = of;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => void this.now(question), waitMs);
  }

  /** Asks at once, as for another order. */
  async now(question: Question): Promise<void> {
    const mine = (this.asked += 1);
    set(this.root(), "aria-busy", true);
    try {
      const draw = await question();
      if (mine === this.asked) draw();
    } catch (error) {
      if (mine !== this.asked) return;
      // Asked again when somebody comes back to it.
      this.of = "";
      this.failed(messageOf(error));
    } finally {
      if (mine === this.asked) set(this.root(), "aria-busy", null);
    }
  }

  /** Nothing is asked any more, and no answer is drawn, until the next question. */
  forget(): void {
    clearTimeout(this.timer);
    this.of = "";
    this.asked += 1;
    set(this.root(), "aria-busy", null);
  }
}
