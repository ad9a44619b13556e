// SPDX-License-Identifier: Apache-2.0
// The sheet of keyboard shortcuts.
import { h } from "../lib/dom";
import type { Keys, Shortcut } from "../ui/keys";
import { makeDialog } from "../ui/parts";

const SYMBOLS: Record<string, string> = {
  ArrowLeft: "←",
  ArrowRight: "→",
  ArrowUp: "↑",
  ArrowDown: "↓",
  " ": "Space",
  Escape: "Esc",
};

export class Help {
  private readonly body = h("div", { class: "help-sections" });
  readonly element = makeDialog("Keyboard shortcuts", this.body);

  constructor(private readonly keys: Keys) {}

  toggle(): void {
    if (this.element.open) return this.element.close();
    const sections = new Map<string, Shortcut[]>();
    for (const shortcut of this.keys.all()) {
      const list = sections.get(shortcut.section) ?? [];
      list.push(shortcut);
      sections.set(shortcut.section, list);
    }
    this.body.replaceChildren(
      ...[...sections].map(([title, shortcuts]) =>
        h(
          "section",
          {},
          h("h3", {}, title),
          h(
            "dl",
            { class: "help-list" },
            ...shortcuts.flatMap((shortcut) => [
              h("dt", {}, h("kbd", {}, SYMBOLS[shortcut.key] ?? shortcut.key)),
              h("dd", {}, shortcut.text),
            ]),
          ),
        ),
      ),
    );
    this.element.showModal();
  }
}
