// SPDX-License-Identifier: Apache-2.0
// Line icons of one weight on a grid of 16.
import { s } from "../lib/dom";

const PATHS = {
  menu: "M2.5 4.5h11M2.5 8h11M2.5 11.5h11",
  sun: "M8 5.2a2.8 2.8 0 1 0 0 5.6 2.8 2.8 0 0 0 0-5.6ZM8 1.5v1.4M8 13.1v1.4M1.5 8h1.4M13.1 8h1.4M3.4 3.4l1 1M11.6 11.6l1 1M3.4 12.6l1-1M11.6 4.4l1-1",
  moon: "M13.2 9.6A5.6 5.6 0 0 1 6.4 2.8a5.6 5.6 0 1 0 6.8 6.8Z",
  system: "M2 3h12v8H2zM6 14h4M8 11v3",
  help: "M5.9 6.1a2.1 2.1 0 1 1 3 1.9c-.6.3-.9.7-.9 1.4M8 11.8v.1",
  pause: "M5.5 3.5v9M10.5 3.5v9",
  play: "M5 3.2v9.6l7.5-4.8z",
  back: "M11 3.2 5.5 8l5.5 4.8M4 3.2v9.6",
  forward: "M5 3.2 10.5 8 5 12.8M12 3.2v9.6",
  folder: "M2 4.2h4l1.4 1.6H14v7H2z",
  search: "M7 2.8a4.2 4.2 0 1 0 0 8.4 4.2 4.2 0 0 0 0-8.4ZM10.2 10.2l3.3 3.3",
  close: "M4 4l8 8M12 4l-8 8",
  plus: "M8 3.5v9M3.5 8h9",
  minus: "M3.5 8h9",
  fit: "M2.5 6V2.5H6M10 2.5h3.5V6M13.5 10v3.5H10M6 13.5H2.5V10",
  left: "M10 3.5 5.5 8l4.5 4.5",
  right: "M6 3.5 10.5 8 6 12.5",
  up: "M8 13V3.5M4 7.2l4-4 4 4",
  download: "M8 2.5v7.6M4.8 7.2 8 10.4l3.2-3.2M3 13.3h10",
} as const;
export type IconName = keyof typeof PATHS;

export function icon(name: IconName): SVGSVGElement {
  return s(
    "svg",
    { viewBox: "0 0 16 16", class: "icon", "aria-hidden": "true", focusable: "false" },
    s("path", {
      d: PATHS[name],
      fill: name === "play" ? "currentColor" : "none",
    }),
  );
}
