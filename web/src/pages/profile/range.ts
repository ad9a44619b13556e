// SPDX-License-Identifier: Apache-2.0
// The part of the run that is shown, in nanoseconds since its begin: zoom, pan, ticks, words. Pure.

import { NS_UNITS } from "../../lib/format";

export { lasting } from "../../lib/format";

export interface Range {
  readonly from: number;
  readonly to: number;
}

/** Nothing happens within less. */
const LEAST_NS = 200;

/** Browsers take only so many changes of the address a second. */
export const ADDRESS_MS = 300;

export const whole = (duration: number): Range => ({ from: 0, to: Math.max(1, duration) });

export const span = (range: Range): number => range.to - range.from;

/** Whole nanoseconds within the run, and not less than can be told apart. */
export function clamped(from: number, to: number, duration: number): Range {
  const all = Math.max(1, duration);
  const length = Math.min(all, Math.max(Math.min(LEAST_NS, all), Math.round(to - from)));
  const at = Math.min(all - length, Math.max(0, Math.round(from)));
  return { from: at, to: at + length };
}

/** Zooms so that what is at `share` (0 to 1) of the picture stays there; a factor above 1 shows more detail. */
export function zoomed(range: Range, factor: number, share: number, duration: number): Range {
  const length = Math.min(
    Math.max(1, duration),
    Math.max(Math.min(LEAST_NS, duration), span(range) / factor),
  );
  const at = range.from + share * span(range);
  return clamped(at - share * length, at - share * length + length, duration);
}

/** Moves by a share of what is shown; the length stays. */
export function panned(range: Range, share: number, duration: number): Range {
  const by = share * span(range);
  return clamped(range.from + by, range.to + by, duration);
}

/** Where a time is on a picture of this width. */
export const place = (t: number, range: Range, width: number): number =>
  ((t - range.from) / span(range)) * width;

export const timeAt = (x: number, range: Range, width: number): number =>
  range.from + (x / Math.max(1, width)) * span(range);

/** What is asked of the server: the range with as much again beside it, so that small moves need no answer. */
export function wanted(
  range: Range,
  pixels: number,
  processes: number,
  duration: number,
  limits: { columns: number; cells: number },
): { from: number; to: number; columns: number } {
  const margin = span(range) / 4;
  const { from, to } = {
    from: Math.max(0, Math.floor(range.from - margin)),
    to: Math.min(Math.max(1, duration), Math.ceil(range.to + margin)),
  };
  const most = Math.min(limits.columns, Math.floor(limits.cells / Math.max(1, processes)));
  const columns = Math.round((pixels * (to - from)) / span(range));
  return { from, to, columns: Math.max(1, Math.min(most, columns)) };
}

/** Round times, so many at most. */
export function ticks(range: Range, most: number): { at: number[]; step: number } {
  const rough = span(range) / Math.max(1, most);
  const power = 10 ** Math.floor(Math.log10(Math.max(1, rough)));
  const step = Math.max(
    1,
    [1, 2, 5, 10].map((n) => n * power).find((n) => n >= rough) ?? 10 * power,
  );
  const at: number[] = [];
  for (let t = Math.ceil(range.from / step) * step; t <= range.to; t += step) at.push(t);
  return { at, step };
}

/** A time on the axis, with the digits that the step needs. */
export function tickLabel(t: number, step: number): string {
  const [unit, name] = NS_UNITS.find(([size]) => t >= size) ?? [1, "ns"];
  if (t === 0) return "0";
  const digits = Math.max(0, Math.ceil(Math.log10(unit / step) - 1e-9));
  return `${(t / unit).toFixed(digits)} ${name}`;
}

/** A time in the picture, told as exactly as a pixel. */
export const exactly = (t: number, range: Range, width: number): string =>
  tickLabel(Math.round(t), Math.max(1, span(range) / Math.max(1, width)));

/** The range of an address, or the whole. */
export function fromQuery(query: Readonly<Record<string, string>>, duration: number): Range {
  const from = Number(query["from"]);
  const to = Number(query["to"]);
  return query["from"] !== undefined && Number.isFinite(from) && to > from
    ? clamped(from, to, duration)
    : whole(duration);
}

/** The part as it is asked for; nothing for the whole. */
export const partOf = (range: Range, duration: number): { from: number; to: number } | null =>
  range.from === 0 && range.to >= duration ? null : { from: range.from, to: range.to };

/** A range with something around it, so that one sees where it begins and ends. */
export function around(range: Range, duration: number): Range {
  const margin = Math.max(500, span(range) * 0.15);
  return clamped(range.from - margin, range.to + margin, duration);
}

export const toQuery = (range: Range, duration: number): Record<string, string> =>
  range.from === 0 && range.to >= duration
    ? { from: "", to: "" }
    : { from: String(range.from), to: String(range.to) };
