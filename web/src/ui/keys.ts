// SPDX-License-Identifier: Apache-2.0
// Keyboard shortcuts: one list, from which the help sheet is made.

export interface Shortcut {
  /** As KeyboardEvent.key. */
  key: string;
  text: string;
  section: string;
  run(event: KeyboardEvent): void;
}

export class Keys {
  private readonly shortcuts: Shortcut[] = [];

  /** Adds shortcuts; call the result to take them away. */
  add(...shortcuts: Shortcut[]): () => void {
    this.shortcuts.push(...shortcuts);
    return () => {
      for (const shortcut of shortcuts) {
        const i = this.shortcuts.indexOf(shortcut);
        if (i >= 0) this.shortcuts.splice(i, 1);
      }
    };
  }

  all(): readonly Shortcut[] {
    return this.shortcuts;
  }

  handle(event: KeyboardEvent): boolean {
    if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event)) return false;
    if (document.querySelector("dialog[open]") !== null) return false;
    // The page's own shortcuts came last and win over the shell's.
    const found = this.shortcuts.findLast((shortcut) => shortcut.key === event.key);
    if (found === undefined) return false;
    event.preventDefault();
    found.run(event);
    return true;
  }
}

function isTyping(event: KeyboardEvent): boolean {
  const target = event.target;
  if (!(target instanceof HTMLElement)) return false;
  // Space presses the button that has the focus.
  if (event.key === " " && target.closest("button, a, summary, [role=button]") !== null)
    return true;
  // A slider goes to its ends.
  if (
    target instanceof HTMLInputElement &&
    target.type === "range" &&
    /^(Home|End)$/.test(event.key)
  )
    return true;
  if (target instanceof HTMLInputElement)
    return !["range", "checkbox", "radio", "button"].includes(target.type);
  return (
    target instanceof HTMLTextAreaElement ||
    target instanceof HTMLSelectElement ||
    target.isContentEditable
  );
}
