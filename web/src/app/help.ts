// SPDX-License-Identifier: Apache-2.0
// The sheet of keyboard shortcuts, made from the shortcuts there are.
import { h } from "../lib/dom";
import type { Keys, Shortcut } from "../ui/keys";

const SYMBOLS: Record<string, string> = {
  ArrowLeft: "←",
  ArrowRight: "→",
  ArrowUp: "↑",
  ArrowDown: "↓",
  " ": "Space",
  Escape: "Esc",
};

export class Help {
  readonly element = h("dialog", { class: "dialog", "aria-label": "Keyboard shortcuts" });

  constructor(private readonly keys: Keys) {
    // A click on the backdrop is one on the dialog itself.
    this.element.addEventListener("click", (event) => {
      if (event.target === this.element) this.element.close();
    });
  }

  toggle(): void {
    if (this.element.open) return this.element.close();
    const sections = new Map<string, Shortcut[]>();
    for (const shortcut of this.keys.all()) {
      const list = sections.get(shortcut.section) ?? [];
      list.push(shortcut);
      sections.set(shortcut.section, list);
    }
    this.element.replaceChildren(
      h(
        "header",
        { class: "dialog-head" },
        h("h2", {}, "Keyboard shortcuts"),
        h(
          "button",
          { class: "icon-button", "aria-label": "Close", onclick: () => this.element.close() },
          "×",
        ),
      ),
      h(
        "div",
        { class: "help-sections" },
        ...[...sections].map(([title, shortcuts]) =>
          h(
            "section",
            {},
            h("h3", {}, title),
            h(
              "dl",
              { class: "help-list" },
              ...shortcuts.flatMap((shortcut) => [
                h("dt", {}, ...keyCaps(shortcut.key)),
                h("dd", {}, shortcut.text),
              ]),
            ),
          ),
        ),
      ),
    );
    this.element.showModal();
  }
}

function keyCaps(key: string): HTMLElement[] {
  const parts = key === " " ? [key] : key.split(" ");
  return parts.map((part) => h("kbd", {}, SYMBOLS[part] ?? part));
}
