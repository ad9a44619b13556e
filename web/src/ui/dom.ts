// SPDX-License-Identifier: Apache-2.0
// Elements in one call. Text is always set as text, never parsed as HTML.

export type Child = Node | string | number | null | undefined | false;
type Value = string | number | boolean | null | undefined | EventListener | ((event: never) => void);

/** h("button", {class: "x", onclick: f, disabled: true, "aria-label": "..."}, "text") */
export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Record<string, Value> = {},
  ...children: (Child | Child[])[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  setAll(element, attributes);
  append(element, children);
  return element;
}

export function svg<K extends keyof SVGElementTagNameMap>(
  tag: K,
  attributes: Record<string, Value> = {},
  ...children: (Child | Child[])[]
): SVGElementTagNameMap[K] {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  setAll(element, attributes);
  append(element, children);
  return element;
}

export function clear(element: Element): void {
  element.replaceChildren();
}

/** Sets text only where it differs: no layout for what stayed. */
export function setText(element: Element, text: string): void {
  if (element.textContent !== text) element.textContent = text;
}

function setAll(element: Element, attributes: Record<string, Value>): void {
  for (const [key, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") element.addEventListener(key.replace(/^on/, ""), value as EventListener);
    else element.setAttribute(key, value === true ? "" : String(value));
  }
}

function append(element: Element, children: (Child | Child[])[]): void {
  for (const child of children.flat()) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : String(child));
  }
}
