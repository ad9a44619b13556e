// SPDX-License-Identifier: Apache-2.0
// Makes elements. Text is always text: nothing that came from a node is ever parsed as HTML, and what cannot be
// seen in it is shown.
import { codeIn } from "./format";
import { visible } from "./visible";

export type Child = Node | string | number | null | undefined | false;
type Value = string | number | boolean | null | undefined | EventListener;
export type Attributes = Record<string, Value>;

const SVG = "http://www.w3.org/2000/svg";

function fill<E extends Element>(
  element: E,
  attributes: Attributes,
  children: readonly Child[],
): E {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(name.replace(/^on/, ""), value);
    else set(element, name, value);
  }
  for (const child of children) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : visible(String(child)));
  }
  return element;
}

/** Attributes that people read or hear. */
const READ: ReadonlySet<string> = new Set(["title", "aria-label", "placeholder", "alt"]);

/** Sets an attribute, or takes it away: null, undefined and false. */
export function set(
  element: Element,
  name: string,
  value: string | number | boolean | null | undefined,
): void {
  if (value === null || value === undefined || value === false) element.removeAttribute(name);
  else {
    const text = value === true ? "" : READ.has(name) ? visible(String(value)) : String(value);
    if (element.getAttribute(name) !== text) element.setAttribute(name, text);
  }
}

/** An HTML element: `h('button', {type: 'button', onclick: f}, 'Text')`. */
export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  return fill(document.createElement(tag), attributes, children);
}

/** An SVG element. */
export function s<K extends keyof SVGElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: Child[]
): SVGElementTagNameMap[K] {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

/** Puts text in an element only when it is another one, which spares layout. */
export function text(element: Element, value: string): void {
  const shown = visible(value);
  if (element.textContent !== shown) element.textContent = shown;
}

/** Replaces all children. */
export function children(element: Element, ...nodes: Child[]): void {
  element.replaceChildren();
  fill(element, {}, nodes);
}

/** Sets one CSS property by the object model: the page's content policy forbids style attributes in text. */
export function styled<E extends HTMLElement>(
  element: E,
  property: string,
  value: string | undefined,
): E {
  if (value !== undefined) element.style.setProperty(property, value);
  return element;
}

/** Makes these the children, in this order. Those that stay in their order are not touched, and keep focus. */
export function arrange(parent: Element, wanted: readonly Node[]): void {
  const kept = new Set(wanted);
  for (const child of [...parent.childNodes]) if (!kept.has(child)) child.remove();
  let at: ChildNode | null = parent.firstChild;
  for (const node of wanted) {
    if (at === node) at = at.nextSibling;
    else parent.insertBefore(node, at);
  }
}

/** A sentence with what stands between backticks as code: commands that a person is to type. */
export const prose = (sentence: string): Child[] =>
  codeIn(sentence).map(({ text: part, isCode }) => (isCode ? h("code", {}, part) : part));
