// SPDX-License-Identifier: Apache-2.0
// Parts that several cards of the profile have.
import { type Child, h } from "../../lib/dom";

/** A button that looks like a link, such as to a process; what is cut off is in its title. */
export const linkButton = (text: string, run: (event: Event) => void, title = text): HTMLElement =>
  h("button", { type: "button", class: "profile-link", title, onclick: run }, text);

/** A small table; all columns but the first are numbers, unless `isNumber` says otherwise. */
export function list(
  head: readonly string[],
  rows: readonly (readonly Child[])[],
  { kind = "", isNumber = (i: number) => i > 0 } = {},
): HTMLElement {
  const cell = (tag: "td" | "th", content: Child, i: number) =>
    isNumber(i)
      ? h(tag, { class: "num", title: typeof content === "string" ? content : null }, content)
      : h(tag, {}, content);
  return h(
    "table",
    { class: `table profile-list ${kind}`.trim() },
    h("thead", {}, h("tr", {}, ...head.map((text, i) => cell("th", text, i)))),
    h("tbody", {}, ...rows.map((row) => h("tr", {}, ...row.map((one, i) => cell("td", one, i))))),
  );
}
