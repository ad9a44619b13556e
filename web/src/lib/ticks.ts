// SPDX-License-Identifier: Apache-2.0
// Round numbers for axes.
import { two } from "./format";

/** Ticks from 0 to at least `max` in steps of 1, 2 or 5 times a power of `base` (1024 for bytes); the last is the axis' end. */
export function valueTicks(max: number, want: number, base: 1000 | 1024 = 1000): number[] {
  if (!(max > 0) || !Number.isFinite(max)) return [0, 1];
  let unit = 1;
  if (base === 1024) while (max / unit >= 1024) unit *= 1024;
  const step = niceStep(max / unit / Math.max(1, want)) * unit;
  const ticks: number[] = [];
  const steps = Math.ceil(max / step - 1e-9);
  for (let i = 0; i <= steps; i += 1) ticks.push(Number((i * step).toPrecision(12)));
  return ticks;
}

function niceStep(rough: number): number {
  const power = 10 ** Math.floor(Math.log10(rough));
  const scaled = rough / power;
  return (scaled <= 1 ? 1 : scaled <= 2 ? 2 : scaled <= 5 ? 5 : 10) * power;
}

const STEPS_S = [
  1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800,
  604800,
];

/** Ticks of time between two times in Unix milliseconds, on round local times. */
export function timeTicks(
  from: number,
  to: number,
  want: number,
): { at: number[]; stepMs: number } {
  if (!(to > from)) return { at: [], stepMs: 1000 };
  const rough = (to - from) / 1000 / Math.max(1, want);
  const stepMs = (STEPS_S.find((one) => one >= rough) ?? Math.ceil(rough / 604800) * 604800) * 1000;
  const offset = new Date(from).getTimezoneOffset() * 60000;
  const at: number[] = [];
  for (let t = Math.ceil((from - offset) / stepMs) * stepMs + offset; t <= to; t += stepMs)
    at.push(t);
  return { at, stepMs };
}

/** A tick's label: seconds only where the steps are shorter than a minute, dates where they are longer than a day. */
export function timeLabel(t: number, stepMs: number): string {
  const d = new Date(t);
  if (stepMs >= 86400000) return `${two(d.getMonth() + 1)}-${two(d.getDate())}`;
  const minutes = `${two(d.getHours())}:${two(d.getMinutes())}`;
  return stepMs < 60000 ? `${minutes}:${two(d.getSeconds())}` : minutes;
}
