// SPDX-License-Identifier: Apache-2.0
// What the pages with tables and charts are put together from.
import type { Ctx } from "./ctx";
import { type Attributes, type Child, h, prose, set, text as setText } from "../lib/dom";
import { icon, type IconName } from "./icons";

export interface CardOptions {
  /** Said below the title: what the numbers are and in which unit. */
  hint?: string;
  tools?: Child[];
  class?: string;
  testid?: string;
}

/** A titled part of a page. */
export function card(title: string, options: CardOptions, ...content: Child[]): HTMLElement {
  return h(
    "section",
    {
      class: `card ${options.class ?? ""}`.trim(),
      "aria-label": title,
      "data-testid": options.testid,
    },
    h(
      "div",
      { class: "card-head" },
      h(
        "div",
        {},
        h("h2", {}, title),
        options.hint ? h("p", { class: "muted" }, ...prose(options.hint)) : null,
      ),
      options.tools ? h("div", { class: "card-tools" }, ...options.tools) : null,
    ),
    ...content,
  );
}

export interface Choice<V extends string> {
  root: HTMLElement;
  choose(value: V): void;
}

/** A few alternatives side by side; one is chosen. */
export function choice<V extends string>(
  label: string,
  options: readonly (readonly [value: V, name: string, title?: string])[],
  value: V,
  chosen: (value: V) => void,
): Choice<V> {
  const buttons = options.map(([one, name, title]) =>
    h("button", { type: "button", title, "data-value": one, click: () => pick(one) }, name),
  );
  const root = h("div", { class: "segmented", role: "group", "aria-label": label }, ...buttons);
  const show = (now: V) =>
    buttons.forEach((button, i) => set(button, "aria-pressed", String(options[i][0] === now)));
  const pick = (now: V) => {
    show(now);
    chosen(now);
  };
  show(value);
  return { root, choose: show };
}

export interface Stat {
  root: HTMLElement;
  draw(value: string, more?: string): void;
}

/** One number with its name. */
export function stat(label: string, hint?: string): Stat {
  const value = h("dd", { class: "stat-value num" });
  const more = h("dd", { class: "stat-more muted num" });
  const root = h(
    "div",
    { class: "stat", title: hint },
    h("dt", { class: "muted" }, label),
    value,
    more,
  );
  return {
    root,
    draw(text, extra = "") {
      setText(value, text);
      setText(more, extra);
    },
  };
}

/** A level or severity: its own sign beside its word, so that colour is not needed. */
export function level(name: string): HTMLElement {
  const sign = SIGNS[name] ?? "·";
  return h(
    "span",
    { class: `level level-${name in SIGNS ? name : "info"}` },
    h("span", { class: "level-sign", "aria-hidden": "true" }, sign),
    name,
  );
}

const SIGNS: Record<string, string> = {
  info: "i",
  notice: "•",
  warning: "!",
  error: "×",
  critical: "×",
  alert: "×",
  emergency: "×",
  minor: "!",
  major: "×",
};

/** Its title has the whole name, which a cell may cut off. */
export const nodeLink = (ctx: Ctx, name: string, text = name): HTMLElement =>
  h("a", { href: ctx.href("node", name), class: "place", title: name }, text);

export const groupLink = (ctx: Ctx, name: string): HTMLElement =>
  h("a", { href: ctx.href("groups", name), class: "place", title: name }, name);

/** A sentence in the place of what cannot be shown, and why. */
export const note = (...content: Child[]): HTMLElement => h("p", { class: "note" }, ...content);

/** A button that is an icon; its words are read, and shown to whoever points at it. */
export const iconButton = (name: IconName, label: string, run: () => void, more: Attributes = {}) =>
  h(
    "button",
    {
      type: "button",
      class: "icon-button",
      title: label,
      "aria-label": label,
      onclick: run,
      ...more,
    },
    icon(name),
  );

export const closeButton = (close: () => void, more: Attributes = {}): HTMLElement =>
  h(
    "button",
    { type: "button", class: "icon-button", "aria-label": "Close", onclick: close, ...more },
    "×",
  );

/** A dialog that is closed by its button, Escape and a click beside it; it is in no document yet. */
export function makeDialog(title: string, body: HTMLElement): HTMLDialogElement {
  const element: HTMLDialogElement = h(
    "dialog",
    { class: "dialog", "aria-label": title },
    h(
      "header",
      { class: "dialog-head" },
      h("h2", {}, title),
      closeButton(() => element.close()),
    ),
    body,
  );
  // A click on the backdrop is one on the dialog itself.
  element.addEventListener("click", (event) => {
    if (event.target === element) element.close();
  });
  return element;
}

/** Opens a dialog, which is gone when it is closed. */
export function dialog(title: string, ...content: Child[]): HTMLDialogElement {
  const element = makeDialog(title, h("div", { class: "dialog-body" }, ...content));
  element.addEventListener("close", () => element.remove());
  document.body.append(element);
  element.showModal();
  return element;
}

/** Any map from the server as a list of names and values. */
export function facts(entries: readonly (readonly [string, Child])[]): HTMLElement {
  return h(
    "dl",
    { class: "facts-list" },
    ...entries.flatMap(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]),
  );
}

/** A field to search by; `/` goes to the one that is `main`. */
export const searchField = (label: string, testid: string, main: boolean): HTMLInputElement =>
  h("input", {
    class: "input",
    type: "search",
    placeholder: label,
    "aria-label": label,
    autocomplete: "off",
    spellcheck: "false",
    maxlength: "200",
    "data-testid": testid,
    "data-search": main ? true : undefined,
  });

/** `/` goes to the page's field to filter or search by. Call the result when the page goes. */
export const searchKey = (ctx: Ctx, root: HTMLElement, text = "Filter"): (() => void) =>
  ctx.keys.add({
    key: "/",
    text,
    section: "This page",
    run: () =>
      (
        root.querySelector<HTMLElement>("[data-search]") ??
        root.querySelector<HTMLElement>("input[type=search]")
      )?.focus(),
  });

/** In place of a page: what there will be, and why there is nothing yet. */
export function emptyState(title: string, text: string, ...more: (Node | string)[]): HTMLElement {
  return h("div", { class: "empty" }, h("h2", {}, title), h("p", {}, ...prose(text)), ...more);
}
