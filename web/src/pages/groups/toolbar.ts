// SPDX-License-Identifier: Apache-2.0
// Search, what is measured, how much of it is shown, how closely.
import { scaleChoice } from "../../ui/traffic-legend";
import { type Choice, choice } from "../../ui/parts";
import { h } from "../../lib/dom";
import type { Minimum } from "../../model/edges";
import type { Level } from "../../model/scene";
import type { Measure } from "../../model/traffic-scale";
import { type SearchActions, SearchBox } from "./search-box";
import type { ViewOptions } from "./view";

const LEVELS: [Level, string, string][] = [
  ["auto", "Auto", "Groups from afar, nodes from near"],
  ["groups", "Groups", "One bubble a group"],
  ["nodes", "Nodes", "Every node"],
];
const MEASURES: [Measure, string, string][] = [
  ["msgs", "Messages", "Edges by msg/s"],
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
  readonly search: SearchBox;
  private readonly level: Choice<Level>;
  private readonly measure: Choice<Measure>;
  private readonly scale: Choice<"" | "relative">;
  private readonly minimum = h(
    "select",
    { class: "select", "aria-label": "Traffic shown" },
    ...MINIMA.map(([value, label]) => h("option", { value }, label)),
  );

  constructor(change: (options: Partial<ViewOptions>) => void, actions: SearchActions) {
    this.search = new SearchBox((search) => change({ search }), actions);
    this.level = choice("How closely", LEVELS, "auto", (level) => change({ level }));
    this.measure = choice("Measure", MEASURES, "msgs", (measure) => change({ measure }));
    this.scale = scaleChoice((scale) => change({ scale }));
    this.minimum.addEventListener("change", () =>
      change({ minimum: asMinimum(this.minimum.value) }),
    );
    this.element = h(
      "div",
      { class: "toolbar" },
      this.search.element,
      h(
        "div",
        { class: "toolbar-row" },
        this.level.root,
        this.measure.root,
        this.minimum,
        this.scale.root,
      ),
    );
  }

  show(options: ViewOptions): void {
    this.search.show(options.search);
    this.level.choose(options.level);
    this.measure.choose(options.measure);
    this.scale.choose(options.scale);
    this.minimum.value = String(options.minimum);
  }
}

export function asMinimum(text: string | undefined): Minimum {
  return text === "direct" ? text : Number(text) || 0;
}
