// SPDX-License-Identifier: Apache-2.0
// How a group is recognised: ten hues by four patterns, and always its label. The hues are in two
// halves, each of five that stay apart also for people who see few colours; hues of different halves
// that may be taken for each other never have the same pattern.
import { byName } from "../lib/natural";

export type Pattern = "plain" | "stripes" | "dots" | "cross";

/** By round of ten groups: the pattern of the first five and of the second five. */
const PATTERNS: [Pattern, Pattern][] = [
  ["plain", "stripes"],
  ["dots", "cross"],
  ["stripes", "plain"],
  ["cross", "dots"],
];

// Blue, orange, green, cyan, brown; violet, crimson, slate, magenta, olive.
const LIGHT = [
  "#2f6fdb",
  "#d9822b",
  "#12836b",
  "#1f9ac4",
  "#8a6d1d",
  "#7a5bd0",
  "#c23b5a",
  "#5b6475",
  "#b0479e",
  "#5d8a1c",
];
const DARK = [
  "#6fa0ff",
  "#f0a355",
  "#3fbf9f",
  "#58c4e8",
  "#cfae4b",
  "#a78bfa",
  "#f0708c",
  "#9aa5b8",
  "#dd82cc",
  "#9ccb4f",
];

export interface Identity {
  color: string;
  pattern: Pattern;
}

const placeOfName = new Map<string, number>();
const placeOfId = new Map<number, number>();

/**
 * Gives groups their looks: those seen first in the order of their names, so that two browsers show
 * the same, and later ones the next, so that none changes.
 */
export function meetGroups(groups: readonly { id: number; name: string }[]): void {
  for (const { name } of groups.filter((group) => !placeOfName.has(group.name)).sort(byName))
    placeOfName.set(name, placeOfName.size);
  for (const { id, name } of groups) placeOfId.set(id, placeOfName.get(name) as number);
}

/** Another source gives other ids; names keep their looks. */
export function forgetIds(): void {
  placeOfId.clear();
}

/** Of the group with that id; nodes in no group have a negative one. */
export function groupIdentity(id: number, dark: boolean): Identity {
  if (id < 0) return { color: dark ? "#8b949e" : "#8a919c", pattern: "plain" };
  const hues = dark ? DARK : LIGHT;
  const place = placeOfId.get(id) ?? id;
  const hue = place % hues.length;
  const [first, second] = PATTERNS[Math.floor(place / hues.length) % PATTERNS.length];
  return { color: hues[hue], pattern: hue < hues.length / 2 ? first : second };
}
