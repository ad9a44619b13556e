// SPDX-License-Identifier: Apache-2.0
// The stretch of time that charts and percentiles look at: so many seconds up to the time shown.
import type { Ctx } from "./ctx";
import { choice } from "./parts";

const PERIODS = [
  ["60", "1 min"],
  ["300", "5 min"],
  ["900", "15 min"],
  ["3600", "1 h"],
  ["86400", "1 d"],
  ["604800", "7 d"],
  ["2592000", "30 d"],
] as const;
type Period = (typeof PERIODS)[number][0];

/** A table of all links over a longer time costs the server too much. */
const LONGEST_TABLE_S = 3600;
/** How much a server without an archive keeps, in memory. */
const LONGEST_HISTORY_S = 86400;

/** The periods that there is something to show of. */
function periods(ctx: Ctx): (typeof PERIODS)[number][] {
  const longest =
    ctx.route.page === "traffic"
      ? LONGEST_TABLE_S
      : ctx.store.hello?.archive
        ? Infinity
        : LONGEST_HISTORY_S;
  return PERIODS.filter(([value]) => Number(value) <= longest);
}

const LONGEST_REFRESH_MS = 60_000;

/** Points asked for: one for about three pixels of the widest chart. */
export const POINTS = 240;

/** The time shown in Unix ms: the newest frame's, or where one is paused. */
export function shownTime(ctx: Ctx): number {
  const { time, live } = ctx.store;
  return (time.mode === "live" ? live.frame?.t : time.t) ?? Date.now();
}

/** Unix ms where time does not run on, else null: for questions that mean "now" without one. */
export function stoppedAt(ctx: Ctx): number | null {
  const { time } = ctx.store;
  return time.mode === "live" || time.t === null ? null : Math.round(time.t);
}

export function periodOf(ctx: Ctx): number {
  const asked = ctx.route.query["window"];
  // The rates of a table are wanted as they are now.
  return Number(
    periods(ctx).find(([value]) => value === asked)?.[0] ??
      (ctx.route.page === "traffic" ? "60" : "300"),
  );
}

/** How often what shows a period is asked for again: it moves by a point or two meanwhile. */
export const refreshMs = (ctx: Ctx): number =>
  Math.min(Math.max(2000, periodOf(ctx) * 10), LONGEST_REFRESH_MS);

/**
 * What charts show, Unix ms. Where time stands still a quarter of it is what came after, and more near the
 * beginning of the history, as far as it goes.
 */
export const span = (ctx: Ctx): { from: number; to: number } => spanOf(ctx, periodOf(ctx) * 1000);

/** The same for so many milliseconds. */
export function spanOf(ctx: Ctx, period: number): { from: number; to: number } {
  const stopped = stoppedAt(ctx);
  const to =
    stopped === null
      ? shownTime(ctx)
      : endAround(stopped, period, ctx.store.range ?? [stopped, stopped]);
  return { from: Math.round(to - period), to: Math.round(to) };
}

/** The end of a period around a time within a range. */
export function endAround(
  t: number,
  period: number,
  [first, last]: readonly [number, number],
): number {
  return Math.max(t, Math.min(last, Math.max(t + period / 4, first + period)));
}

/** The same for a chart, with the time shown where that stands still. */
export const chartSpan = (ctx: Ctx): { from: number; to: number; mark: number | null } => ({
  ...span(ctx),
  mark: stoppedAt(ctx),
});

/** Goes to a time that was chosen in a chart: as far back as all is kept, not numbers alone. */
export function seekShown(ctx: Ctx, t: number): void {
  const { range } = ctx.store;
  if (range === null || t >= range[0]) ctx.store.seek(t);
}

/** The choice of the period; it is kept in the address. */
export function periodChoice(ctx: Ctx, changed: () => void): HTMLElement {
  return choice<Period>("Time shown", periods(ctx), String(periodOf(ctx)) as Period, (value) => {
    ctx.setQuery({ window: value });
    changed();
  }).root;
}
