// SPDX-License-Identifier: Apache-2.0
// Short messages at the lower edge; an error stays for ten seconds, or until it is dismissed.
import { h } from "../lib/dom";

const SHOWN_MS = { info: 4000, error: 10_000 };
const AT_MOST = 3;

export class Toasts {
  readonly element = h("div", { class: "toasts", role: "status", "aria-live": "polite" });

  show(text: string, level: "info" | "error" = "error"): void {
    // The same words again say nothing new.
    for (const old of this.element.children) if (old.firstChild?.textContent === text) old.remove();
    const toast = h(
      "div",
      { class: `toast toast-${level}` },
      h("span", {}, text),
      h(
        "button",
        { class: "icon-button", "aria-label": "Dismiss", onclick: () => toast.remove() },
        "×",
      ),
    );
    this.element.append(toast);
    while (this.element.children.length > AT_MOST) this.element.firstElementChild?.remove();
    setTimeout(() => toast.remove(), SHOWN_MS[level]);
  }
}
