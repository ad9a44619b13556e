// SPDX-License-Identifier: Apache-2.0
// The stretch of time that charts and percentiles look at: so many seconds up to the time shown.
import type { Ctx } from "./ctx";
import { choice } from "./parts";

const PERIODS = [
  ["60", "1 min"],
  ["300", "5 min"],
  ["900", "15 min"],
  ["3600", "1 h"],
] as const;
type Period = (typeof PERIODS)[number][0];

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
  // A table of all links over long is dear, and its rates are wanted as they are now.
  return Number(
    PERIODS.find(([value]) => value === asked)?.[0] ??
      (ctx.route.page === "traffic" ? "60" : "300"),
  );
}

/** How often what shows a period is asked for again: it moves by a point or two meanwhile. */
export const refreshMs = (ctx: Ctx): number => Math.max(2000, periodOf(ctx) * 10);

/**
 * What charts show, Unix ms. Where time stands still a quarter of it is what came after, and more near the
 * beginning of the history, as far as it goes.
 */
export function span(ctx: Ctx): { from: number; to: number } {
  const period = periodOf(ctx) * 1000;
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

/** The choice of the period; it is kept in the address. */
export function periodChoice(ctx: Ctx, changed: () => void): HTMLElement {
  return choice<Period>("Time shown", PERIODS, String(periodOf(ctx)) as Period, (value) => {
    ctx.setQuery({ window: value });
    changed();
  }).root;
}
