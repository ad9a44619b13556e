// SPDX-License-Identifier: Apache-2.0
// What stands above the time line: what its colours are, and buttons that move it.
import { h } from "../../../lib/dom";
import { type About } from "../answers";
import { type Timeline } from "./timeline";
import { iconButton } from "../../../ui/parts";

export function timelineTools(about: About, timeline: Timeline, hasGroups: boolean): HTMLElement {
  const legend = (kind: string, text: string) =>
    h("span", { class: `profile-key key-${kind}` }, h("i", {}), text);
  return h(
    "div",
    { class: "profile-tools" },
    h("h2", {}, "Time line"),
    h(
      "div",
      { class: "profile-legend" },
      legend("running", "runs"),
      legend("runnable", "waits for a scheduler"),
      legend("waiting", "waits"),
      about.totals.gc > 0 ? legend("gc", "collects garbage") : null,
      about.totals.exiting > 0 ? legend("exiting", "ends") : null,
      about.has_messages ? timeline.messages.button : null,
      hasGroups ? timeline.marks.button : null,
    ),
    h(
      "div",
      { class: "row" },
      iconButton("left", "Earlier ([)", () => timeline.pan(-0.4)),
      iconButton("right", "Later (])", () => timeline.pan(0.4)),
      iconButton("minus", "Zoom out (-)", () => timeline.zoom(0.5)),
      iconButton("plus", "Zoom in (+)", () => timeline.zoom(2)),
      iconButton("fit", "The whole run (Home)", () => timeline.all()),
    ),
  );
}
