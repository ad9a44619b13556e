// SPDX-License-Identifier: Apache-2.0
// A button that switches between all processes and one of them.
import { h, text as setText } from "../../../lib/dom";
import type { Of } from "../answers";

export class Whose {
  readonly root = h("button", { type: "button", class: "button", hidden: true });
  private next: number | null = null;

  constructor(chosen: (process: number | null) => void) {
    this.root.addEventListener("click", () => chosen(this.next));
  }

  /** `process`: the one of which it is shown; `open`: the one that is open on the page. */
  show(process: number | null, open: number | null): void {
    this.next = process === null ? open : null;
    this.root.hidden = process === null && open === null;
    setText(this.root, process === null ? "Only of the chosen process" : "Of all processes");
  }
}

/** Of whose processes and of which part of the time a sum is, for the end of a sentence. */
export function ofWhat(of: Of, isPart: boolean, whose: string | null): string {
  const when =
    of === "part"
      ? "in the part that is shown"
      : isPart
        ? "in the whole recording: the part that is shown has too many events to be looked at for itself"
        : "in the whole recording";
  return whose === null ? when : `of ${whose} alone, ${when}`;
}
