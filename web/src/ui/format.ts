// SPDX-License-Identifier: Apache-2.0
// Numbers for people: three significant digits, SI steps, the unit beside; "-" where nothing is known.

const STEPS: [number, string][] = [
  [1e12, "T"],
  [1e9, "G"],
  [1e6, "M"],
  [1e3, "k"],
];

export const UNKNOWN = "–";

export function number(value: number | null | undefined): string {
  if (value === null || value === undefined || !Number.isFinite(value)) return UNKNOWN;
  const size = Math.abs(value);
  for (const [step, letter] of STEPS) {
    // 999,950 is 1.00 M, not 1000 k.
    if (size >= step * 0.9995) return `${digits(value / step)} ${letter}`;
  }
  if (size === 0) return "0";
  return size < 0.01 ? "< 0.01" : digits(value);
}

/** Whole counts with thousands apart; from 100,000 on as number(). */
export function count(value: number | null | undefined): string {
  if (value === null || value === undefined || !Number.isFinite(value)) return UNKNOWN;
  return Math.abs(value) < 1e5 ? Math.round(value).toLocaleString("en-US") : number(value);
}

export function unit(value: number | null | undefined, name: string): string {
  const text = number(value);
  if (text === UNKNOWN) return text;
  return /[a-zA-Z]$/.test(text) ? `${text}${name}` : `${text} ${name}`;
}

export const messagesPerS = (value: number | null | undefined): string => {
  const text = number(value);
  return text === UNKNOWN ? text : `${text} msg/s`;
};
export const bytesPerS = (value: number | null | undefined): string => unit(value, "B/s");
export const bytes = (value: number | null | undefined): string => unit(value, "B");

/** A share of 1 as per cent. */
export function percent(value: number | null | undefined): string {
  if (value === null || value === undefined || !Number.isFinite(value)) return UNKNOWN;
  const hundred = value * 100;
  return `${hundred !== 0 && Math.abs(hundred) < 10 ? hundred.toFixed(1) : hundred.toFixed(0)} %`;
}

/** Hours, minutes and seconds of the day; tenths where asked. */
export function clock(t: number | null | undefined, tenths = false): string {
  if (t === null || t === undefined || !Number.isFinite(t)) return UNKNOWN;
  const date = new Date(t);
  const two = (n: number) => String(n).padStart(2, "0");
  const text = `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
  return tenths ? `${text}.${Math.floor(date.getMilliseconds() / 100)}` : text;
}

/** With the day, for what may be older than today. */
export function dateTime(t: number): string {
  const date = new Date(t);
  const two = (n: number) => String(n).padStart(2, "0");
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())} ${clock(t)}`;
}

/** A span of time in its two largest units. */
export function duration(ms: number | null | undefined): string {
  if (ms === null || ms === undefined || !Number.isFinite(ms)) return UNKNOWN;
  const s = Math.round(Math.abs(ms) / 1000);
  if (s < 1) return `${Math.round(Math.abs(ms))} ms`;
  if (s < 60) return `${s} s`;
  const minutes = Math.floor(s / 60);
  if (minutes < 60) return s % 60 === 0 ? `${minutes} min` : `${minutes} min ${s % 60} s`;
  const hours = Math.floor(minutes / 60);
  if (hours < 48) return minutes % 60 === 0 ? `${hours} h` : `${hours} h ${minutes % 60} min`;
  return `${Math.floor(hours / 24)} d ${hours % 24} h`;
}

/** n1@host.example.org -> n1 where all nodes share the host, else n1@host. */
export function shortNode(name: string, host: string | null): string {
  return host !== null && name.endsWith(`@${host}`) ? name.slice(0, -host.length - 1) : name;
}

/** The host that all names share, or null. */
export function commonHost(names: Iterable<string>): string | null {
  let host: string | null = null;
  for (const name of names) {
    const own = name.slice(name.indexOf("@") + 1);
    if (host === null) host = own;
    else if (host !== own) return null;
  }
  return host;
}

function digits(value: number): string {
  const size = Math.abs(value);
  if (size >= 99.95) return value.toFixed(0);
  if (size >= 9.995) return trim(value.toFixed(1));
  return trim(value.toFixed(2));
}

function trim(text: string): string {
  return text.replace(/\.?0+$/, "");
}
