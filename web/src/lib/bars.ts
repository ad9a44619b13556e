// SPDX-License-Identifier: Apache-2.0
// Bars that show a share: of a limit, of a whole, or of the largest in a column.
import { h, set, styled, text as setText } from "./dom";
import { percent, type Format } from "./format";

/** The shares of a limit from which a bar warns, and alarms. */
const WARN = 0.7;
const ALARM = 0.9;

const barLevel = (share: number): "" | "warn" | "alarm" =>
  share >= ALARM ? "alarm" : share >= WARN ? "warn" : "";

export interface Bar {
  root: HTMLElement;
  draw(value: number | null | undefined, limit: number | null | undefined): void;
}

/** A label, a bar and "12,345 of 262,144 (4.7 %)". */
export function bar(label: string, format: Format, warns = true): Bar {
  const fill = h("span", { class: "bar-fill" });
  const track = h(
    "span",
    { class: "bar-track", role: "meter", "aria-label": label, "aria-valuemin": 0 },
    fill,
  );
  const value = h("span", { class: "bar-value num" });
  const root = h("div", { class: "bar" }, h("span", { class: "bar-label" }, label), value, track);
  return {
    root,
    draw(used, limit) {
      const known = typeof used === "number" && typeof limit === "number" && limit > 0;
      const share = known ? Math.min(1, used / limit) : 0;
      fill.style.width = `${(share * 100).toFixed(2)}%`;
      track.className = `bar-track ${known && warns ? barLevel(share) : ""}`.trim();
      set(track, "aria-valuemax", known ? limit : null);
      set(track, "aria-valuenow", known ? used : null);
      setText(
        value,
        known
          ? `${format(used)} of ${format(limit)} (${percent((used / limit) * 100)})`
          : format(used),
      );
    },
  };
}

/** A small bar within a cell of a table, its length a share of the column's largest. */
export function cellBar(share: number, label: string): HTMLElement {
  return h(
    "span",
    { class: "cell-bar" },
    styled(
      h("span", { class: "cell-bar-fill", "aria-hidden": "true" }),
      "width",
      `${(Math.max(0, Math.min(1, share)) * 100).toFixed(1)}%`,
    ),
    h("span", { class: "cell-bar-text" }, label),
  );
}
