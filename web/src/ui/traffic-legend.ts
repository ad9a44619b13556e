// SPDX-License-Identifier: Apache-2.0
// The traffic scale with its unit: what a width or a colour is in numbers.
import { h, s } from "../lib/dom";
import { bytes, number } from "../lib/format";
import { color, type Measure, position, ticks, width, widthAt } from "../model/traffic-scale";

const LENGTH = 216;
const STEPS = 36;

/** `wedge`: widths mean something too; else one height. */
export function trafficLegend(measure: Measure, dark: boolean, wedge: boolean): HTMLElement {
  const format = measure === "msgs" ? number : bytes;
  const rates = ticks(measure);
  const steps = Array.from({ length: STEPS }, (_, i) => {
    const at = (i + 0.5) / STEPS;
    const thick = wedge ? widthAt(at) : 8;
    return s("rect", {
      x: 6 + (i * LENGTH) / STEPS,
      y: 7 - thick / 2,
      width: LENGTH / STEPS + 0.4,
      height: thick,
      fill: color(at, dark),
    });
  });
  const labels = rates.flatMap((rate, i) => {
    const x = 6 + position(rate, measure) * LENGTH;
    const anchor = i === 0 ? "start" : i === rates.length - 1 ? "end" : "middle";
    const shift = i === 0 ? -4 : i === rates.length - 1 ? 6 : 0;
    // Of byte rates, whose names are long, each second one is written.
    const written = measure === "msgs" || i % 2 === 0;
    return [
      s("path", { d: `M${x} 13v3`, class: "legend-tick" }),
      written ? s("text", { x: x + shift, y: 26, "text-anchor": anchor }, format(rate)) : null,
    ];
  });
  const [least, most] = [rates[0], rates[rates.length - 1]];
  const says = `From ${format(least)} (${width(least, measure).toFixed(1)} px) to ${format(most)} (${width(most, measure).toFixed(1)} px)`;
  return h(
    "div",
    {},
    h(
      "h3",
      {},
      measure === "msgs" ? "Messages/s" : "Bytes/s",
      h("span", { class: "muted" }, " one way, logarithmic"),
    ),
    s(
      "svg",
      { viewBox: `0 0 ${LENGTH + 12} 30`, class: "legend-scale", role: "img", "aria-label": says },
      ...steps,
      ...labels,
    ),
  );
}
