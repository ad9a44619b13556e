// SPDX-License-Identifier: Apache-2.0
// Messages as arrows between lanes: those of the chosen process, or all where they are few.
import { h, set, text as setText } from "../../../lib/dom";
import { count, messageOf } from "../../../lib/format";
import { type Arrows, getArrows } from "../answers";
import type { Range } from "../range";

/** So many between all lanes are still told apart by eye; of one process more of them are. */
const MOST_OF_ALL = 300;
const MOST_OF_ONE = 800;

export interface Wish {
  range: Range;
  lanes: readonly number[];
  process: number | null;
  /** Whether the part has few enough events to look at each of them. */
  near: boolean;
}

export class MessageArrows {
  readonly button: HTMLButtonElement;
  readonly says = h("p", {
    class: "profile-says muted num",
    role: "status",
    "data-testid": "profile-arrows",
  });
  private on = true;
  private shown: Arrows | null = null;
  private of = "";

  constructor(private readonly changed: () => void) {
    this.button = h(
      "button",
      {
        type: "button",
        class: "profile-key key-message",
        title: "Messages of the chosen process, or all where they are few",
        "aria-pressed": "true",
        onclick: () => this.toggle(),
      },
      h("i", {}),
      "messages",
    );
  }

  /** What is to be drawn. */
  get arrows(): Arrows["arrows"] {
    return this.on ? (this.shown?.arrows ?? []) : [];
  }

  /** Asks for what is in sight, if that is something else than before. */
  async ask(wish: Wish): Promise<void> {
    const process =
      wish.process !== null && wish.lanes.includes(wish.process) ? wish.process : null;
    const of = JSON.stringify([wish.range, wish.lanes, process, wish.near, this.on]);
    if (of === this.of) return;
    this.of = of;
    if (!this.on || wish.lanes.length === 0) return this.show(null, "");
    if (!wish.near)
      return this.show(null, "Messages are drawn where fewer events are in sight: zoom in.");
    try {
      const most = process === null ? MOST_OF_ALL : MOST_OF_ONE;
      const found = await getArrows(wish.range, [...wish.lanes], process, most);
      if (of !== this.of) return;
      this.show(process === null && found.count > most ? null : found, told(found, process, most));
    } catch (error) {
      if (of === this.of) this.show(null, messageOf(error));
    }
  }

  private show(shown: Arrows | null, words: string): void {
    this.shown = shown;
    setText(this.says, words);
    this.says.hidden = words === "";
    this.changed();
  }

  private toggle(): void {
    this.on = !this.on;
    set(this.button, "aria-pressed", String(this.on));
    this.changed();
  }
}

/** What is drawn and what is not. */
export function told(found: Arrows, process: number | null, most: number): string {
  const { arrows, count: all, elsewhere } = found;
  const messages = (n: number) => `${count(n)} ${n === 1 ? "message" : "messages"}`;
  const beside =
    elsewhere > 0 ? ` ${count(elsewhere)} go to or come from processes without a lane.` : "";
  if (process === null)
    return all > most
      ? `${messages(all)} between these lanes are too many to draw: zoom in, or choose a process.`
      : `${messages(all)} between these lanes.`;
  return all > arrows.length
    ? `${count(arrows.length)} of the ${messages(all)} of the chosen process are drawn.${beside}`
    : `${messages(all)} of the chosen process.${beside}`;
}
