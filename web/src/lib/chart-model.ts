// SPDX-License-Identifier: Apache-2.0
// What a time-series chart draws, without drawing it: scales, lines with gaps, the point under the pointer.

export interface Series {
  /** The column of the data. */
  key: string;
  label: string;
  values: readonly (number | null)[];
}

export interface Box {
  x: number;
  y: number;
  width: number;
  height: number;
}

export interface Domain {
  from: number;
  to: number;
  max: number;
}

/** The largest known value of all series, 0 where there is none. Stacked: of their sum at a time. */
export function largest(series: readonly Series[], stacked = false): number {
  let max = 0;
  if (stacked) {
    const length = series[0]?.values.length ?? 0;
    for (let i = 0; i < length; i += 1) {
      let sum = 0;
      for (const one of series) sum += one.values[i] ?? 0;
      if (sum > max) max = sum;
    }
    return max;
  }
  for (const one of series)
    for (const value of one.values) if (value !== null && value > max) max = value;
  return max;
}

export const xOf = (t: number, domain: Domain, box: Box): number =>
  box.x +
  (domain.to > domain.from ? ((t - domain.from) / (domain.to - domain.from)) * box.width : 0);

export const yOf = (value: number, domain: Domain, box: Box): number =>
  box.y +
  box.height -
  (domain.max > 0 ? Math.min(1, Math.max(0, value / domain.max)) : 0) * box.height;

/**
 * The time between two points beyond which the line is broken: four times the usual step, so that one lost frame
 * is bridged and a time that was not measured is seen as such.
 */
export function gapOf(t: readonly number[]): number {
  if (t.length < 3) return Infinity;
  const steps: number[] = [];
  for (let i = 1; i < t.length; i += 1) steps.push((t[i] as number) - (t[i - 1] as number));
  steps.sort((a, b) => a - b);
  return Math.max(1, steps[Math.floor(steps.length / 2)] as number) * 4;
}

const point = (x: number, y: number): string => `${x.toFixed(1)},${y.toFixed(1)}`;

/** Runs of indices whose values are all known and follow one another without a gap. */
export function runs(
  t: readonly number[],
  values: readonly (number | null)[],
  gap: number,
): [number, number][] {
  const found: [number, number][] = [];
  let start = -1;
  const length = Math.min(t.length, values.length);
  for (let i = 0; i < length; i += 1) {
    const value = values[i];
    const known = value !== null && value !== undefined && Number.isFinite(value);
    const broken = i > 0 && (t[i] as number) - (t[i - 1] as number) > gap;
    if (start >= 0 && (!known || broken)) {
      found.push([start, i - 1]);
      start = -1;
    }
    if (known && start < 0) start = i;
  }
  if (start >= 0) found.push([start, length - 1]);
  return found;
}

/** The path of a line; a point that stands alone is a short dash, so that it is seen. */
export function linePath(
  t: readonly number[],
  values: readonly (number | null)[],
  domain: Domain,
  box: Box,
): string {
  const parts: string[] = [];
  for (const [a, b] of runs(t, values, gapOf(t))) {
    for (let i = a; i <= b; i += 1) {
      const x = xOf(t[i] as number, domain, box);
      const y = yOf(values[i] as number, domain, box);
      if (a === b) parts.push(`M${point(x - 1.5, y)}L${point(x + 1.5, y)}`);
      else parts.push(`${i === a ? "M" : "L"}${point(x, y)}`);
    }
  }
  return parts.join("");
}

/** The path of the area between two lines; `below` is null for the axis. */
export function areaPath(
  t: readonly number[],
  above: readonly (number | null)[],
  below: readonly (number | null)[] | null,
  domain: Domain,
  box: Box,
): string {
  const parts: string[] = [];
  for (const [a, b] of runs(t, above, gapOf(t))) {
    if (a === b) continue;
    const forth: string[] = [];
    const back: string[] = [];
    for (let i = a; i <= b; i += 1) {
      const x = xOf(t[i] as number, domain, box);
      forth.push(point(x, yOf(above[i] as number, domain, box)));
      back.push(point(x, yOf(below?.[i] ?? 0, domain, box)));
    }
    parts.push(`M${forth.join("L")}L${back.reverse().join("L")}Z`);
  }
  return parts.join("");
}

/** Sums from the first series up; null where a value of the series itself is not known. */
export function stack(series: readonly Series[]): (number | null)[][] {
  const length = series[0]?.values.length ?? 0;
  const sum = new Array<number>(length).fill(0);
  return series.map((one) =>
    sum.map((before, i) => {
      const value = one.values[i];
      if (value === null || value === undefined) return null;
      sum[i] = before + value;
      return before + value;
    }),
  );
}

/** The index of the time nearest to `at`, -1 where there is none. `t` ascends. */
export function nearest(t: readonly number[], at: number): number {
  if (t.length === 0) return -1;
  let low = 0;
  let high = t.length - 1;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((t[middle] as number) < at) low = middle + 1;
    else high = middle;
  }
  if (low > 0 && at - (t[low - 1] as number) <= (t[low] as number) - at) return low - 1;
  return low;
}

/** The last index at which any series has a value, -1 where none has. */
export function lastKnown(series: readonly Series[]): number {
  return Math.max(-1, ...series.map((one) => one.values.findLastIndex((value) => value !== null)));
}
