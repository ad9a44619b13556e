// SPDX-License-Identifier: Apache-2.0
// Call stacks as a flame graph; a box that is chosen takes the whole width.
import { children as fill, h, styled, text as setText } from "../../../lib/dom";
import { share } from "../../../lib/format";
import { card } from "../../../ui/parts";
import type { Calls } from "../answers";
import { boxes, follow } from "./flame-model";
import { lasting } from "../range";
import { linkButton } from "../parts";

const ROW = 20;
/** More boxes than these cannot be seen, and are not made. */
const MOST = 1500;

export class Flame {
  readonly root: HTMLElement;
  private readonly trail = h("p", { class: "profile-trail" });
  private readonly graph = h("div", { class: "profile-flame" });
  private readonly says = h("p", { class: "profile-says muted num", role: "status" });
  private calls: Calls | null = null;
  private path: string[] = [];
  /** What the calls are of, in words. */
  private of = "";

  constructor(tools: HTMLElement[]) {
    this.root = card(
      "Calls",
      {
        hint: "Time of functions with what they call; choose one to see it wider. `bin/sderl prof export FILE --format speedscope` writes the stacks for speedscope.",
        tools,
        testid: "profile-calls",
      },
      this.trail,
      this.graph,
      this.says,
    );
  }

  show(calls: Calls, of: string): void {
    this.calls = calls;
    this.of = of;
    this.draw();
  }

  /** There is no answer, for this reason. */
  fail(message: string): void {
    this.calls = null;
    fill(this.trail);
    fill(this.graph);
    styled(this.graph, "height", "0");
    setText(this.says, message);
  }

  private go(path: string[]): void {
    this.path = path;
    this.draw();
  }

  private draw(): void {
    const { calls } = this;
    if (calls === null) return;
    const above = follow(calls.frames, this.path);
    const top = above.at(-1);
    const list = top === undefined ? calls.frames : [top];
    const outside = above.slice(0, -1).map((frame) => frame.function);
    const all = boxes(list, top?.ns ?? calls.ns).slice(0, MOST);
    fill(
      this.trail,
      this.step("all", []),
      ...above.flatMap((frame, i) => [" › ", this.step(frame.function, this.path.slice(0, i + 1))]),
    );
    styled(this.graph, "height", `${(1 + Math.max(0, ...all.map((b) => b.depth))) * ROW}px`);
    const chain: string[] = [];
    fill(
      this.graph,
      ...all.map(({ frame, x, width, depth }) => {
        chain.length = depth;
        chain.push(frame.function);
        const path = [...outside, ...chain];
        const words = `${frame.function}: ${lasting(frame.ns)}, ${share(frame.ns / Math.max(1, calls.ns))}`;
        const box = h(
          "button",
          {
            type: "button",
            class: `profile-box tone-${tone(frame.function)}`,
            title: words,
            onclick: () => this.go(path),
            onpointerenter: () => setText(this.says, words),
            onfocus: () => setText(this.says, words),
          },
          width > 0.03 ? frame.function : "",
        );
        styled(box, "left", `${x * 100}%`);
        styled(box, "width", `${width * 100}%`);
        return styled(box, "top", `${depth * ROW}px`);
      }),
    );
    setText(this.says, `${lasting(calls.ns)} of functions that were recorded, ${this.of}.`);
  }

  private step(name: string, path: string[]): HTMLElement {
    return linkButton(name, () => this.go(path));
  }
}

/** Functions of a module have one shade. */
function tone(name: string): number {
  let sum = 0;
  for (const letter of name.split(":")[0] ?? "") sum = (sum * 31 + letter.charCodeAt(0)) % 997;
  return sum % 4;
}
