// SPDX-License-Identifier: Apache-2.0
// Calls in the part that is shown: a flame graph, and who calls whom. Both are one answer of the server.
import { h } from "../../../lib/dom";
import { getCalls } from "../answers";
import { Flame } from "./flame";
import { CallersCard } from "./callers";
import { partOf, type Range } from "../range";
import { Still } from "../still";
import { ofWhat, Whose } from "./whose";
import "./calls.css";

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
  private readonly still = new Still(
    () => this.root,
    (message) => this.fail(message),
  );

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
    this.still.ask(`${range.from}-${range.to}-${process}`, () => this.question(range, process));
  }

  destroy(): void {
    this.still.forget();
  }

  private async question(range: Range, process: number | null): Promise<() => void> {
    const part = partOf(range, this.duration);
    const calls = await getCalls(part, process);
    return () => {
      const of = ofWhat(calls.of, part !== null, calls.whose);
      this.flame.show(calls, of);
      this.graph.show(calls, of);
    };
  }

  /** What is there is of another part. */
  private fail(message: string): void {
    this.flame.fail(message);
    this.graph.fail(message);
  }
}
