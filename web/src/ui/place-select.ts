// SPDX-License-Identifier: Apache-2.0
// A choice of where: a node, all nodes of a group, or all of a name; the address has it as `on`.
import type { Ctx } from "./ctx";
import { children as fill, h } from "../lib/dom";
import { natural } from "../lib/natural";
import { family } from "../model/places";

export class PlaceSelect {
  readonly root = h("select", {
    class: "select",
    "aria-label": "Where",
    "data-testid": "where",
  });
  private drawn = "";

  constructor(private readonly ctx: Ctx) {
    this.root.addEventListener("change", () => ctx.setQuery({ on: this.root.value }));
  }

  get value(): string {
    return this.root.value;
  }

  focus(): void {
    this.root.focus();
  }

  /** As the cluster and the address are now. */
  draw(): void {
    const { topology } = this.ctx.store.shown;
    const on = this.ctx.route.query["on"] ?? "";
    const nodes = (topology?.nodes ?? []).map((one) => one.name).sort(natural);
    const groups = (topology?.groups ?? []).map((one) => one.name).sort(natural);
    const families = [...new Set(nodes.map(family))].sort(natural);
    const key = JSON.stringify([nodes, groups, on]);
    if (key !== this.drawn) {
      this.drawn = key;
      const some = (label: string, kind: string, names: readonly string[]) =>
        names.length === 0
          ? null
          : h(
              "optgroup",
              { label },
              ...names.map((name) => h("option", { value: `${kind}:${name}` }, name)),
            );
      fill(
        this.root,
        h("option", { value: "" }, "Choose where"),
        some("A node", "node", nodes),
        some("All nodes of a group", "group", groups),
        some("All nodes of a name", "family", families),
      );
    }
    this.root.value = on;
    if (this.root.value !== on) this.root.value = "";
  }
}
