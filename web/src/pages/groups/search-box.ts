// SPDX-License-Identifier: Apache-2.0
// The field that finds nodes and groups, with the list of what it finds. Enter goes to the first of
// them, and again to the next; where there is one alone it opens that.
import { children as fill, h, set, text } from "../../lib/dom";
import type { Match } from "../../model/search";
import { icon } from "../../ui/icons";
import { sign } from "../../ui/patterns";

export interface SearchActions {
  /** What the words mean now, the likeliest first. */
  find(): readonly Match[];
  /** Shows it on the map. */
  goTo(match: Match): void;
  /** Opens its page. */
  open(match: Match): void;
  dark(): boolean;
}

const LISTED = 8;

export class SearchBox {
  readonly input = h("input", {
    class: "input",
    type: "search",
    role: "combobox",
    placeholder: "Find a node or group",
    "aria-label": "Find a node or group",
    "aria-controls": "search-list",
    "aria-expanded": "false",
    "aria-autocomplete": "list",
    "data-testid": "search",
    spellcheck: "false",
    autocomplete: "off",
  });
  private readonly found = h("span", { class: "search-found", role: "status" });
  private readonly list = h("ul", {
    class: "search-list",
    id: "search-list",
    role: "listbox",
    "aria-label": "Found",
    hidden: true,
  });
  readonly element = h(
    "div",
    { class: "search" },
    icon("search"),
    this.input,
    this.found,
    this.list,
  );
  private matches: readonly Match[] = [];
  /** Which of them is shown on the map, or -1. */
  private at = -1;
  private drawn = "";

  constructor(
    private readonly change: (words: string) => void,
    private readonly actions: SearchActions,
  ) {
    this.input.addEventListener("input", () => {
      this.at = -1;
      change(this.input.value);
    });
    this.input.addEventListener("focus", () => this.draw());
    this.input.addEventListener("blur", () => this.draw());
    this.input.addEventListener("keydown", (event) => this.key(event));
    // The field keeps the focus, so that Enter goes on.
    this.list.addEventListener("pointerdown", (event) => event.preventDefault());
  }

  focus(): void {
    this.input.focus();
    this.input.select();
  }

  /** The words of the address, and what they find in the present topology. */
  show(words: string): void {
    if (document.activeElement !== this.input) this.input.value = words;
    const shown = this.matches[this.at];
    this.matches = this.actions.find();
    this.at = shown === undefined ? -1 : this.matches.findIndex((one) => same(one, shown));
    text(
      this.found,
      words.trim() === "" ? "" : this.matches.length === 0 ? "none" : String(this.matches.length),
    );
    this.draw();
  }

  private key(event: KeyboardEvent): void {
    const steps: Record<string, number> = {
      ArrowDown: 1,
      ArrowUp: -1,
      Enter: event.shiftKey ? -1 : 1,
    };
    const step = steps[event.key];
    if (step !== undefined) {
      event.preventDefault();
      this.step(step, event.key === "Enter");
    } else if (event.key === "Escape") {
      this.input.value = "";
      this.change("");
      this.input.blur();
    }
  }

  private step(by: number, enter: boolean): void {
    const n = this.matches.length;
    if (n === 0) return;
    if (enter && n === 1 && this.at === 0) return this.actions.open(this.matches[0]);
    this.goTo(this.at < 0 && by < 0 ? n - 1 : (this.at + by + n) % n);
  }

  private goTo(at: number): void {
    this.at = at;
    this.actions.goTo(this.matches[at]);
    // On a phone the list and the keyboard lie over what was found.
    if (matchMedia("(pointer: coarse)").matches) this.input.blur();
    this.draw();
  }

  private draw(): void {
    const open = document.activeElement === this.input && this.matches.length > 0;
    // The rows around the one that is shown.
    const first = Math.max(0, Math.min(this.at - LISTED + 2, this.matches.length - LISTED));
    const rows = open ? this.matches.slice(first, first + LISTED) : [];
    const drawn = JSON.stringify([rows, this.at, this.matches.length, this.actions.dark()]);
    if (drawn === this.drawn) return;
    this.drawn = drawn;
    this.list.hidden = !open;
    set(this.input, "aria-expanded", String(open));
    set(this.input, "aria-activedescendant", open && this.at >= 0 ? `search-${this.at}` : null);
    const rest = this.matches.length - first - rows.length;
    fill(
      this.list,
      ...rows.map((match, i) => this.row(match, first + i)),
      open && rest > 0
        ? h("li", { class: "search-rest", role: "presentation" }, `and ${rest} more`)
        : null,
    );
  }

  private row(match: Match, at: number): HTMLElement {
    return h(
      "li",
      {
        class: "search-row",
        id: `search-${at}`,
        role: "option",
        "aria-selected": String(at === this.at),
        title: match.name,
        onclick: () => this.goTo(at),
      },
      sign(match.kind, match.id, this.actions.dark()),
      h("span", { class: "search-name" }, match.name),
      h("span", { class: "muted" }, match.kind),
    );
  }
}

const same = (a: Match, b: Match): boolean => a.kind === b.kind && a.name === b.name;
