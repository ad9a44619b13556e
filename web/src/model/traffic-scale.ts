// SPDX-License-Identifier: Apache-2.0
// Traffic as width and colour, on a logarithmic scale. On the absolute one the same rate looks the
// same today and tomorrow, in this cluster and in another; a relative one spreads what is shown now.

export type Measure = "msgs" | "bytes";

/** The rates a second that it begins and ends with, and how many times larger each tick is. */
export interface Scale {
  readonly low: number;
  readonly high: number;
  readonly step: number;
}

const ABSOLUTE: Record<Measure, Scale> = {
  msgs: { low: 1, high: 1e6, step: 10 },
  bytes: { low: 64, high: 2 ** 30, step: 16 },
};
const WIDTH: [number, number] = [0.9, 8];
/** Above 1: most of the width is left for what is really much. */
const BEND = 1.35;

// From hardly there to glowing; lightness falls (light) or rises (dark) all along.
const LIGHT = ["#b4bcc8", "#cfa06f", "#df8433", "#c2491d", "#7c1d23"];
const DARK = ["#485162", "#80664a", "#b8772e", "#f0a03c", "#ffe9a8"];

export const absolute = (measure: Measure): Scale => ABSOLUTE[measure];

/**
 * From the least to the most of these rates, in whole ticks, so that it does not change with each frame;
 * the absolute one where there are none.
 */
export function relative(rates: Iterable<number>, measure: Measure): Scale {
  let [least, most] = [Infinity, 0];
  for (const rate of rates) {
    if (!(rate > 0)) continue;
    least = Math.min(least, rate);
    most = Math.max(most, rate);
  }
  if (most === 0) return absolute(measure);
  const { step } = ABSOLUTE[measure];
  const power = (rate: number) => Math.log(rate) / Math.log(step);
  const first = Math.floor(power(least) + 1e-9);
  const last = Math.max(first + 1, Math.ceil(power(most) - 1e-9));
  return { low: step ** first, high: step ** last, step };
}

/** Where a rate lies on the scale: 0 at its start, 1 at its end, both also beyond. */
export function position(rate: number, { low, high }: Scale): number {
  if (!(rate > low)) return 0;
  return Math.min(1, Math.log(rate / low) / Math.log(high / low));
}

/** Width in pixels; 0 for no traffic at all. */
export function width(rate: number, scale: Scale): number {
  return rate > 0 ? widthAt(position(rate, scale)) : 0;
}

export function widthAt(at: number): number {
  return WIDTH[0] + (WIDTH[1] - WIDTH[0]) * at ** BEND;
}

const STEPS = 64;
const tables = new Map<boolean, string[]>();

/** Colour of a position, out of a table of 64. */
export function color(at: number, dark: boolean): string {
  let table = tables.get(dark);
  if (!table) {
    const stops = dark ? DARK : LIGHT;
    table = Array.from({ length: STEPS + 1 }, (_, i) => mix(stops, i / STEPS));
    tables.set(dark, table);
  }
  return table[Math.round(Math.min(1, Math.max(0, at)) * STEPS)];
}

/** Rates to write at the legend: each ten times (messages) or sixteen times (bytes) the one before. */
export function ticks({ low, high, step }: Scale): number[] {
  const rates: number[] = [];
  for (let rate = low; rate <= high * 1.0001; rate *= step) rates.push(rate);
  return rates;
}

function mix(stops: readonly string[], at: number): string {
  const scaled = at * (stops.length - 1);
  const i = Math.min(stops.length - 2, Math.floor(scaled));
  const f = scaled - i;
  const a = channels(stops[i]);
  const b = channels(stops[i + 1]);
  return `rgb(${a.map((value, c) => Math.round(value + (b[c] - value) * f)).join(",")})`;
}

function channels(hex: string): number[] {
  return [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
}
