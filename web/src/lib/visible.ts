// SPDX-License-Identifier: Apache-2.0
// Names come from elsewhere. One with a mark that turns the direction of text, or with characters that
// nobody sees, can look like another name, or turn round what stands beside it: such characters are shown
// by their code.

/**
 * Controls but the tabulator and ends of lines, marks of direction, joiners, fillers, tags, private
 * characters, halves of pairs: the table of the library (`sderl_visible`, compared by a test of
 * `sderl_cli`), not the categories of Unicode, of which each browser has another version.
 */
// prettier-ignore
const RANGES: readonly (readonly [number, number])[] = [
  [0x0, 0x8], [0xb, 0xc], [0xe, 0x1f], [0x7f, 0x9f], [0xad, 0xad], [0x34f, 0x34f],
  [0x600, 0x605], [0x61c, 0x61c], [0x6dd, 0x6dd], [0x70f, 0x70f], [0x890, 0x891],
  [0x8e2, 0x8e2], [0x115f, 0x1160], [0x17b4, 0x17b5], [0x180b, 0x180f], [0x200b, 0x200f],
  [0x2028, 0x202e], [0x2060, 0x206f], [0x2800, 0x2800], [0x3164, 0x3164], [0xd800, 0xf8ff],
  [0xfdd0, 0xfdef], [0xfe00, 0xfe0f], [0xfeff, 0xfeff], [0xffa0, 0xffa0], [0xfff0, 0xfffb],
  [0xfffe, 0xffff], [0x110bd, 0x110bd], [0x110cd, 0x110cd], [0x13430, 0x1343f],
  [0x1bca0, 0x1bca3], [0x1d173, 0x1d17a], [0x1fffe, 0x1ffff], [0x2fffe, 0x2ffff],
  [0x3fffe, 0x3ffff], [0x4fffe, 0x4ffff], [0x5fffe, 0x5ffff], [0x6fffe, 0x6ffff],
  [0x7fffe, 0x7ffff], [0x8fffe, 0x8ffff], [0x9fffe, 0x9ffff], [0xafffe, 0xaffff],
  [0xbfffe, 0xbffff], [0xcfffe, 0xcffff], [0xdfffe, 0x10ffff],
];

const code = (point: number): string => `\\u{${point.toString(16)}}`;
const CLASS = `[${RANGES.map(([from, to]) => `${code(from)}-${code(to)}`).join("")}]`;
const HIDDEN = new RegExp(CLASS, "u");
const EACH = new RegExp(CLASS, "gu");

/** The text with what cannot be seen as `\u{202e}`. The same text where there is nothing of that. */
export const visible = (text: string): string =>
  HIDDEN.test(text)
    ? text.replace(EACH, (character) => code(character.codePointAt(0) as number))
    : text;
