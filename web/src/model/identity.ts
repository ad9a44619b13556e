// SPDX-License-Identifier: Apache-2.0
// How a group is recognised: ten hues by four patterns, and always its label. The hues are in two
// halves, each of five that stay apart also for people who see few colours; hues of different halves
// that may be taken for each other never have the same pattern.
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

const HUES = LIGHT.length;
const LOOKS = HUES * PATTERNS.length;
/** The colour of nodes in no group is much like it: it comes after all others. */
const SLATE = LIGHT.indexOf("#5b6475");
const LIKED = LIGHT.map((_, hue) => hue).filter((hue) => hue !== SLATE);
/** Steps that visit all nine liked hues: each has no divisor in common with nine. */
const STEPS = [1, 2, 4, 5, 7, 8];

export interface Identity {
  color: string;
  pattern: Pattern;
}

const placeOfName = new Map<string, number>();
const placeOfId = new Map<number, number>();

/**
 * Gives groups their looks. A name has a hue that it likes best; of two names that like the same, the group
 * that the server saw first has it and the other the next that fewest have. So browsers show the same, and
 * a group that is new takes no look from another, whatever its name, also in a page that is loaded later.
 */
export function meetGroups(groups: readonly { id: number; name: string }[]): void {
  const used = new Uint32Array(LOOKS);
  const unknown = groups.filter(({ name }) => {
    const place = placeOfName.get(name);
    if (place !== undefined) used[place]++;
    return place === undefined;
  });
  for (const { name } of unknown.sort((a, b) => a.id - b.id)) {
    const place = freePlace(name, used);
    used[place]++;
    placeOfName.set(name, place);
  }
  for (const { id, name } of groups) placeOfId.set(id, placeOfName.get(name) as number);
}

/** The hue that fewest groups have, the one that the name likes best first; in it, the pattern that fewest have. */
function freePlace(name: string, used: Uint32Array): number {
  const hash = hashOf(name);
  const step = STEPS[(hash >>> 16) % STEPS.length];
  const rounds = Array.from({ length: PATTERNS.length }, (_, round) => round * HUES);
  const inHue = (hue: number) => rounds.reduce((sum, first) => sum + used[first + hue], 0);
  const hues = LIKED.map((_, i) => LIKED[(hash + i * step) % LIKED.length]);
  const hue = leastOf([...hues, SLATE], inHue);
  return hue + leastOf(rounds, (first) => used[first + hue]);
}

function leastOf(list: readonly number[], value: (one: number) => number): number {
  return list.reduce((best, one) => (value(one) < value(best) ? one : best));
}

/** FNV-1a. */
function hashOf(text: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < text.length; i++)
    hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193) >>> 0;
  return hash;
}

/** Another source gives other ids; names keep their looks. */
export function forgetIds(): void {
  placeOfId.clear();
}

/** As in a page that was just loaded. */
export function forgetLooks(): void {
  forgetIds();
  placeOfName.clear();
}

/** Of the group with that id; nodes in no group have a negative one. */
export function groupIdentity(id: number, dark: boolean): Identity {
  if (id < 0) return { color: dark ? "#8b949e" : "#8a919c", pattern: "plain" };
  const hues = dark ? DARK : LIGHT;
  const place = placeOfId.get(id) ?? id;
  const hue = place % HUES;
  const [first, second] = PATTERNS[Math.floor(place / HUES) % PATTERNS.length];
  return { color: hues[hue], pattern: hue < HUES / 2 ? first : second };
}
