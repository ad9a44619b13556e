// SPDX-License-Identifier: Apache-2.0
// Numbers, bytes, rates and times as text with their units. What is not known is a dash, never 0.

export const UNKNOWN = "–";

export type Maybe = number | null | undefined;

/** How a value is shown. */
export type Format = (value: Maybe) => string;

const known = (value: Maybe): value is number =>
  typeof value === "number" && Number.isFinite(value);

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });

/** Three significant digits, so that a column of them is of one width: 0.123, 1.23, 12.3, 123. */
function three(value: number): string {
  const size = Math.abs(value);
  if (size === 0) return "0";
  if (size >= 99.95) return value.toFixed(0);
  if (size >= 9.995) return value.toFixed(1);
  return value.toFixed(2);
}

/** What an error says, for a person. */
export const messageOf = (error: unknown): string =>
  error instanceof Error ? error.message : String(error);

const trim = (text: string): string => (text.includes(".") ? text.replace(/\.?0+$/, "") : text);

/** A count, all its digits: 12,345. */
export const count: Format = (value) => (known(value) ? whole.format(value) : UNKNOWN);

/** A number of any size with at most three significant digits: 0.5, 12.3, 1.23 k, 4.5 M. */
export const number: Format = (value) => {
  if (!known(value)) return UNKNOWN;
  return prefixed(value, 1000, ["", " k", " M", " G", " T", " P"]);
};

function prefixed(value: number, base: number, prefixes: readonly string[]): string {
  let size = value;
  let at = 0;
  // 999.6 would be shown as 1000
  while (Math.abs(size) >= base - 0.5 && at < prefixes.length - 1) {
    size /= base;
    at += 1;
  }
  const small = Math.abs(size);
  if (at === 0 && small > 0 && small < 0.01) return size < 0 ? "> -0.01" : "< 0.01";
  return trim(three(size)) + (prefixes[at] ?? "");
}

/** Bytes in binary units: 512 B, 1.5 KiB, 23.4 MiB. */
export const bytes: Format = (value) =>
  known(value) ? prefixed(value, 1024, [" B", " KiB", " MiB", " GiB", " TiB", " PiB"]) : UNKNOWN;

/** Bytes a second. */
export const byteRate: Format = (value) => (known(value) ? `${bytes(value)}/s` : UNKNOWN);

/** Things a second: 1.2 k/s. */
export const rate: Format = (value) => (known(value) ? `${number(value)}/s` : UNKNOWN);

/** Messages a second: 1.2 k msg/s. */
export const messageRate: Format = (value) => (known(value) ? `${number(value)} msg/s` : UNKNOWN);

/** A share from 0 to 1 as per cent. */
export const share: Format = (value) => (known(value) ? percent(value * 100) : UNKNOWN);

/** Per cent from 0 to 100. */
export const percent: Format = (value) => {
  if (!known(value)) return UNKNOWN;
  if (value !== 0 && Math.abs(value) < 0.1) return "< 0.1 %";
  return `${Math.abs(value) < 9.95 ? trim(value.toFixed(1)) : value.toFixed(0)} %`;
};

/** A length of time given in seconds: 350 ms, 12 s, 3 min 20 s, 2 h 5 min, 4 d 3 h. */
export function duration(seconds: Maybe): string {
  if (!known(seconds)) return UNKNOWN;
  if (seconds < 0) return `-${duration(-seconds)}`;
  if (seconds < 1 && seconds > 0) return `${Math.round(seconds * 1000)} ms`;
  const s = Math.round(seconds);
  if (s < 60) return `${s} s`;
  if (s < 3600) return pair(Math.floor(s / 60), "min", s % 60, "s");
  if (s < 86400) return pair(Math.floor(s / 3600), "h", Math.floor((s % 3600) / 60), "min");
  return pair(Math.floor(s / 86400), "d", Math.floor((s % 86400) / 3600), "h");
}

const pair = (a: number, unitA: string, b: number, unitB: string): string =>
  b === 0 ? `${a} ${unitA}` : `${a} ${unitA} ${b} ${unitB}`;

export const two = (n: number): string => String(n).padStart(2, "0");

/** Local time of day of Unix milliseconds: 13:05:09. */
export function clock(t: Maybe): string {
  if (!known(t)) return UNKNOWN;
  const d = new Date(t);
  return `${two(d.getHours())}:${two(d.getMinutes())}:${two(d.getSeconds())}`;
}

/** Local date and time: 2026-11-22 13:05:09. */
export function dateTime(t: Maybe): string {
  if (!known(t)) return UNKNOWN;
  const d = new Date(t);
  return `${d.getFullYear()}-${two(d.getMonth() + 1)}-${two(d.getDate())} ${clock(t)}`;
}

/** How long before `now` that was: now, 12 s ago, 3 min ago; later times are "in 3 s". */
export function ago(t: Maybe, now: number): string {
  if (!known(t)) return UNKNOWN;
  const s = (now - t) / 1000;
  if (Math.abs(s) < 1) return "now";
  const big = largest(Math.abs(s));
  return s > 0 ? `${big} ago` : `in ${big}`;
}

function largest(seconds: number): string {
  if (seconds < 60) return `${Math.round(seconds)} s`;
  if (seconds < 3600) return `${Math.round(seconds / 60)} min`;
  if (seconds < 86400) return `${Math.round(seconds / 3600)} h`;
  return `${Math.round(seconds / 86400)} d`;
}

/** A number with a unit as the server names it, for evidence and details. */
export function withUnit(value: unknown, unit: string | null | undefined): string {
  if (value === null || value === undefined) return UNKNOWN;
  if (typeof value === "string") return unit ? `${value} ${unit}` : value;
  if (typeof value !== "number")
    return Array.isArray(value)
      ? value.map((one) => withUnit(one, null)).join(", ")
      : JSON.stringify(value);
  switch (unit) {
    case "bytes":
    case "B":
      return bytes(value);
    case "msg/s":
      return messageRate(value);
    case "bytes/s":
    case "B/s":
      return byteRate(value);
    case "1/s":
    case "/s":
      return rate(value);
    case "%":
    case "percent":
      return percent(value);
    case "share":
    case "ratio":
    case "0..1":
      return share(value);
    case "s":
      return duration(value);
    case "ms":
      return value >= 1000 ? duration(value / 1000) : `${number(value)} ms`;
    case "unix_ms":
      return dateTime(value);
    case "":
    case null:
    case undefined:
      return Number.isInteger(value) ? count(value) : number(value);
    default:
      return unit.startsWith("%")
        ? `${percent(value)}${unit.slice(1)}`
        : `${number(value)} ${unit}`;
  }
}

/** A sentence in parts: those between backticks are code. A backtick without its other one is text. */
export function codeIn(sentence: string): { text: string; isCode: boolean }[] {
  const parts = sentence.split("`");
  if (parts.length % 2 === 0) return [{ text: sentence, isCode: false }];
  return parts.map((text, i) => ({ text, isCode: i % 2 === 1 })).filter(({ text }) => text !== "");
}

/** A message as a sentence; the name of a node or a file at its beginning stays as it is. */
export function sentence(text: string): string {
  const first = /^[a-z]+ /.test(text) ? text.slice(0, 1).toUpperCase() + text.slice(1) : text;
  return /[.!?]$/.test(first) ? first : `${first}.`;
}

/** Units of nanoseconds, the greatest first. */
export const NS_UNITS: readonly (readonly [number, string])[] = [
  [1e9, "s"],
  [1e6, "ms"],
  [1e3, "µs"],
  [1, "ns"],
];

/** A length of time with three digits: 1.25 ms, 340 ns. */
export function lasting(ns: number): string {
  if (ns === 0) return "0 s";
  const [unit, name] = NS_UNITS.find(([size]) => Math.abs(ns) >= size) ?? [1, "ns"];
  const value = ns / unit;
  return `${trim(unit === 1 ? value.toFixed(0) : three(value))} ${name}`;
}
