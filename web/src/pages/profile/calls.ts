// SPDX-License-Identifier: Apache-2.0
// Calls in the part that is shown: a flame graph, and who calls whom. Both are one answer of the server.
import { h, set } from "../../lib/dom";
import { getCalls } from "./answers";
import { Flame } from "./flame";
import { CallersCard } from "./callers";
import { partOf, type Range } from "./range";
import { ofWhat, Whose } from "./whose";
import "./calls.css";

const LATER_MS = 400;

export interface CallsEvents {
  /** Those of one process, or of all. */
  limited(process: number | null): void;
  /** A function whose callers are to be seen. */
  chosen(function_: number): void;
  failed(message: string): void;
}

export class Calls {
  readonly root: HTMLElement;
  private readonly whose: Whose;
  private readonly flame: Flame;
  private readonly graph: CallersCard;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private of = "";
  private isFirst = true;
  private asked = 0;

  constructor(
    private readonly duration: number,
    events: CallsEvents,
  ) {
    this.whose = new Whose(events.limited);
    this.flame = new Flame([this.whose.root]);
    this.graph = new CallersCard(events);
    this.root = h("div", { class: "profile-calls" }, this.flame.root, this.graph.root);
  }

  /** Asks when the range has stood still for a moment; `open`: the process that is open on the page. */
  show(range: Range, process: number | null, open: number | null, function_: number | null): void {
    this.whose.show(process, open);
    this.graph.choose(function_);
    const of = `${range.from}-${range.to}-${process}`;
    if (of === this.of) return;
    const wait = this.isFirst ? 0 : LATER_MS;
    this.isFirst = false;
    this.of = of;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => void this.ask(range, process), wait);
  }

  destroy(): void {
    clearTimeout(this.timer);
    this.asked = -1;
  }

  private async ask(range: Range, process: number | null): Promise<void> {
    const mine = (this.asked += 1);
    set(this.root, "aria-busy", true);
    try {
      const part = partOf(range, this.duration);
      const calls = await getCalls(part, process);
      if (mine !== this.asked) return;
      const of = ofWhat(calls.of, part !== null, calls.whose);
      this.flame.show(calls, of);
      this.graph.show(calls, of);
    } catch (error) {
      if (mine !== this.asked) return;
      // Asked again when somebody comes back to it.
      this.of = "";
      const message = error instanceof Error ? error.message : String(error);
      // What is there is of another part.
      this.flame.fail(message);
      this.graph.fail(message);
    } finally {
      if (mine === this.asked) set(this.root, "aria-busy", null);
    }
  }
}
