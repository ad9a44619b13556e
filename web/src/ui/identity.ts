// SPDX-License-Identifier: Apache-2.0
// How a group is recognised: ten hues by four patterns, and always its label. The hues are chosen
// to stay apart in lightness too, so that they differ for people who see few or no colours.

export type Pattern = "plain" | "stripes" | "dots" | "cross";
const PATTERNS: Pattern[] = ["plain", "stripes", "dots", "cross"];

const LIGHT = ["#2f6fdb", "#d9822b", "#12836b", "#c23b5a", "#7a5bd0", "#8a6d1d", "#1f9ac4", "#b0479e", "#5d8a1c", "#5b6475"];
const DARK = ["#6fa0ff", "#f0a355", "#3fbf9f", "#f0708c", "#a78bfa", "#cfae4b", "#58c4e8", "#dd82cc", "#9ccb4f", "#9aa5b8"];

export interface Identity {
  color: string;
  pattern: Pattern;
}

/** Of the group with that id (protocol ids are small and stable, so a group keeps its looks). */
export function groupIdentity(id: number, dark: boolean): Identity {
  const hues = dark ? DARK : LIGHT;
  return {
    color: hues[id % hues.length],
    pattern: PATTERNS[Math.floor(id / hues.length) % PATTERNS.length],
  };
}

/** Colour of a node in no group. */
export function freeColor(dark: boolean): string {
  return dark ? "#8b949e" : "#8a919c";
}
