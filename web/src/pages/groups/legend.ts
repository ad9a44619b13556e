// SPDX-License-Identifier: Apache-2.0
// What widths, colours and signs mean, with the unit.
import { h, s } from "../../lib/dom";
import { trafficLegend } from "../../ui/traffic-legend";
import { color, type Measure, type Scale } from "../../model/traffic-scale";

export function legend(measure: Measure, scale: Scale, dark: boolean, many: boolean): HTMLElement {
  return h(
    "section",
    { class: "legend card", "aria-label": "Legend" },
    trafficLegend(measure, scale, dark, true),
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
  return s(
    "svg",
    { viewBox: "0 0 18 14", class: "legend-sign", "aria-hidden": "true" },
    ...children,
  );
}

const gatewaySign = () =>
  box(
    s("path", { d: "M9 1a6 6 0 0 1 0 12z", class: "sign-a" }),
    s("path", { d: "M9 1a6 6 0 0 0 0 12z", class: "sign-b" }),
  );
const dashSign = (dark: boolean) =>
  box(
    s("path", {
      d: "M1 7h16",
      stroke: color(0.55, dark),
      "stroke-width": 3,
      "stroke-dasharray": "5 3.5",
      fill: "none",
    }),
  );
const bubbleSign = () => box(s("circle", { cx: 9, cy: 7, r: 6, class: "sign-bubble" }));
const downSign = () =>
  box(
    s("circle", { cx: 9, cy: 7, r: 5.2, class: "sign-down" }),
    s("path", { d: "M7 5l4 4M11 5l-4 4", class: "sign-cross" }),
  );
const unreachableSign = () =>
  box(
    s("circle", { cx: 9, cy: 7, r: 5.2, class: "sign-lost" }),
    s("path", { d: "M7.8 5.6a1.3 1.3 0 1 1 1.8 1.3q-.6.3-.6.9M9 9.7v.1", class: "sign-question" }),
  );
