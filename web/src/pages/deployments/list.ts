// SPDX-License-Identifier: Apache-2.0
import { children as fill, h } from "../../lib/dom";
import { count } from "../../lib/format";

/** More than anybody reads. */
const MOST = 200;

export interface List {
  root: HTMLElement;
  draw: (items: readonly string[]) => void;
}

/** A list with its heading, which is not there while the list is empty. */
export function list(tag: "ol" | "ul", title: string): List {
  const items = h(tag, { class: "ops-list", tabindex: "0", "aria-label": title });
  const root = h("div", { hidden: true }, h("h3", {}, title), items);
  let drawn = "";
  return {
    root,
    draw(texts) {
      root.hidden = texts.length === 0;
      const key = JSON.stringify(texts);
      if (key === drawn) return;
      drawn = key;
      fill(
        items,
        ...texts.slice(0, MOST).map((text) => h("li", {}, text)),
        texts.length > MOST
          ? h("li", { class: "muted" }, `and ${count(texts.length - MOST)} more`)
          : null,
      );
    },
  };
}
