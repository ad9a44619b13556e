// SPDX-License-Identifier: Apache-2.0
// Search, what is measured, how much of it is shown, how closely.
import { type Choice, choice } from "../../ui/parts";
import { icon } from "../../ui/icons";
import { h, text } from "../../lib/dom";
import type { Minimum } from "../../model/edges";
import type { Level } from "../../model/scene";
import type { Measure } from "../../model/traffic-scale";
import type { ViewOptions } from "./view";

const LEVELS: [Level, string, string][] = [
  ["auto", "Auto", "Groups from afar, nodes from near"],
  ["groups", "Groups", "One bubble a group"],
  ["nodes", "Nodes", "Every node"],
];
const MEASURES: [Measure, string, string][] = [
  ["msgs", "Messages", "Edges by messages/s"],
  ["bytes", "Bytes", "Edges by bytes/s"],
];
const MINIMA: [Minimum, string][] = [
  [0, "All traffic"],
  [1, "≥ 1 msg/s"],
  [10, "≥ 10 msg/s"],
  [100, "≥ 100 msg/s"],
  [1000, "≥ 1 k msg/s"],
  [10_000, "≥ 10 k msg/s"],
  ["direct", "Past the gateways"],
];

export class Toolbar {
  readonly element: HTMLElement;
  readonly search = h("input", {
    class: "input",
    type: "search",
    placeholder: "Find a node or group",
    "aria-label": "Find a node or group",
    "data-testid": "search",
    spellcheck: "false",
    autocomplete: "off",
  });
  private readonly found = h("span", { class: "search-found", role: "status" });
  private readonly level: Choice<Level>;
  private readonly measure: Choice<Measure>;
  private readonly minimum = h(
    "select",
    { class: "select", "aria-label": "Traffic shown" },
    ...MINIMA.map(([value, label]) => h("option", { value }, label)),
  );

  constructor(change: (options: Partial<ViewOptions>) => void, enter: () => void) {
    this.level = choice("How closely", LEVELS, "auto", (level) => change({ level }));
    this.measure = choice("Measure", MEASURES, "msgs", (measure) => change({ measure }));
    this.search.addEventListener("input", () => change({ search: this.search.value }));
    this.search.addEventListener("keydown", (event) => {
      if (event.key === "Enter") enter();
      if (event.key === "Escape") {
        change({ search: "" });
        this.search.value = "";
        this.search.blur();
      }
    });
    this.minimum.addEventListener("change", () =>
      change({ minimum: asMinimum(this.minimum.value) }),
    );
    this.element = h(
      "div",
      { class: "toolbar" },
      h("div", { class: "search" }, icon("search"), this.search, this.found),
      h("div", { class: "toolbar-row" }, this.level.root, this.measure.root, this.minimum),
    );
  }

  show(options: ViewOptions): void {
    if (document.activeElement !== this.search) this.search.value = options.search;
    this.level.choose(options.level);
    this.measure.choose(options.measure);
    this.minimum.value = String(options.minimum);
  }

  showFound(n: number | null): void {
    text(this.found, n === null ? "" : n === 0 ? "none" : String(n));
  }
}

export function asMinimum(text: string | undefined): Minimum {
  return text === "direct" ? text : Number(text) || 0;
}
