// SPDX-License-Identifier: Apache-2.0
// What widths, colours and signs mean, with the unit.
import { h, s } from "../../lib/dom";
import { bytes, number } from "../../lib/format";
import { color, type Measure, position, ticks, width, widthAt } from "../../ui/traffic-scale";

const LENGTH = 216;
const STEPS = 36;

export function legend(measure: Measure, dark: boolean, many: boolean): HTMLElement {
  const format = measure === "msgs" ? number : bytes;
  const rates = ticks(measure);
  const wedge = Array.from({ length: STEPS }, (_, i) => {
    const at = (i + 0.5) / STEPS;
    const thick = widthAt(at);
    return s("rect", { x: 6 + (i * LENGTH) / STEPS, y: 7 - thick / 2, width: LENGTH / STEPS + 0.4, height: thick, fill: color(at, dark) });
  });
  const labels = rates.flatMap((rate, i) => {
    const x = 6 + position(rate, measure) * LENGTH;
    const anchor = i === 0 ? "start" : i === rates.length - 1 ? "end" : "middle";
    const shift = i === 0 ? -4 : i === rates.length - 1 ? 6 : 0;
    return [
      s("path", { d: `M${x} 13v3`, class: "legend-tick" }),
      s("text", { x: x + shift, y: 26, "text-anchor": anchor }, format(rate)),
    ];
  });
  return h(
    "section",
    { class: "legend card", "aria-label": "Legend" },
    h("h3", {}, measure === "msgs" ? "Messages/s" : "Bytes/s", h("span", { class: "muted" }, " one way, logarithmic")),
    s("svg", { viewBox: `0 0 ${LENGTH + 12} 30`, class: "legend-scale", role: "img", "aria-label": `From ${format(rates[0])} (${width(rates[0], measure).toFixed(1)} px) to ${format(rates[rates.length - 1])} (${width(rates[rates.length - 1], measure).toFixed(1)} px)` }, ...wedge, ...labels),
    h(
      "ul",
      { class: "legend-signs" },
      sign(gatewaySign(), "gateway: its groups as sectors"),
      sign(dashSign(dark), "past the gateways"),
      many ? sign(bubbleSign(), "group, with its own nodes") : null,
      sign(downSign(), "down"),
      sign(unreachableSign(), "unreachable"),
    ),
  );
}

function sign(mark: SVGSVGElement, text: string): HTMLElement {
  return h("li", {}, mark, h("span", {}, text));
}

function box(...children: SVGElement[]): SVGSVGElement {
  return s("svg", { viewBox: "0 0 18 14", class: "legend-sign", "aria-hidden": "true" }, ...children);
}

const gatewaySign = () =>
  box(s("path", { d: "M9 1a6 6 0 0 1 0 12z", class: "sign-a" }), s("path", { d: "M9 1a6 6 0 0 0 0 12z", class: "sign-b" }));
const dashSign = (dark: boolean) => box(s("path", { d: "M1 7h16", stroke: color(0.55, dark), "stroke-width": 3, "stroke-dasharray": "5 3.5", fill: "none" }));
const bubbleSign = () => box(s("circle", { cx: 9, cy: 7, r: 6, class: "sign-bubble" }));
const downSign = () => box(s("circle", { cx: 9, cy: 7, r: 5.2, class: "sign-down" }), s("path", { d: "M7 5l4 4M11 5l-4 4", class: "sign-cross" }));
const unreachableSign = () => box(s("circle", { cx: 9, cy: 7, r: 5.2, class: "sign-lost" }), s("path", { d: "M7.8 5.6a1.3 1.3 0 1 1 1.8 1.3q-.6.3-.6.9M9 9.7v.1", class: "sign-question" }));
