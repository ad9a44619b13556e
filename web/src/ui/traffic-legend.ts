// SPDX-License-Identifier: Apache-2.0
// The traffic scale with its unit: what a width or a colour is in numbers.
import { h, s } from "../lib/dom";
import { bytes, number } from "../lib/format";
import {
  absolute,
  color,
  type Measure,
  position,
  type Scale,
  ticks,
  width,
  widthAt,
} from "../model/traffic-scale";
import { type Choice, choice } from "./parts";

const LENGTH = 216;
const STEPS = 36;

/** The choice between the absolute and a relative scale; the value is for the address. */
export const scaleChoice = (chosen: (scale: "" | "relative") => void): Choice<"" | "relative"> =>
  choice(
    "Scale of traffic",
    [
      ["", "Absolute", "The same rate always looks the same"],
      ["relative", "Relative", "From the least to the most traffic that is shown now"],
    ],
    "",
    chosen,
  );

/** `wedge`: widths mean something too; else one height. */
export function trafficLegend(
  measure: Measure,
  scale: Scale,
  dark: boolean,
  wedge: boolean,
): HTMLElement {
  const format = measure === "msgs" ? number : bytes;
  const rates = ticks(scale);
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
    const x = 6 + position(rate, scale) * LENGTH;
    const anchor = i === 0 ? "start" : i === rates.length - 1 ? "end" : "middle";
    const shift = i === 0 ? -4 : i === rates.length - 1 ? 6 : 0;
    // Of byte rates, whose names are long, each second one is written.
    const written = measure === "msgs" || rates.length < 5 || i % 2 === 0;
    return [
      s("path", { d: `M${x} 13v3`, class: "legend-tick" }),
      written ? s("text", { x: x + shift, y: 26, "text-anchor": anchor }, format(rate)) : null,
    ];
  });
  const [least, most] = [rates[0], rates[rates.length - 1]];
  const says = `From ${format(least)} (${width(least, scale).toFixed(1)} px) to ${format(most)} (${width(most, scale).toFixed(1)} px)`;
  return h(
    "div",
    {},
    h(
      "h3",
      {},
      measure === "msgs" ? "msg/s" : "Bytes/s",
      h(
        "span",
        { class: "muted" },
        ` one way, logarithmic${scale === absolute(measure) ? "" : ", relative"}`,
      ),
    ),
    s(
      "svg",
      { viewBox: `0 0 ${LENGTH + 12} 30`, class: "legend-scale", role: "img", "aria-label": says },
      ...steps,
      ...labels,
    ),
  );
}
