// SPDX-License-Identifier: Apache-2.0
// Names come from elsewhere. One with a mark that turns the direction of text, or with characters that
// nobody sees, can look like another name, or turn round what stands beside it: such characters are shown
// by their code.

/** Controls but the tabulator and ends of lines, marks of direction, joiners, fillers, tags, halves of pairs. */
const HIDDEN =
  /[\p{Cc}\p{Cf}\p{Cs}\p{Cn}\p{Co}\p{Zl}\p{Zp}\p{Variation_Selector}\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0]/u;
const EACH = new RegExp(HIDDEN.source, "gu");

const code = (character: string): string =>
  /[\t\n\r]/.test(character)
    ? character
    : `\\u{${(character.codePointAt(0) as number).toString(16)}}`;

/** The text with what cannot be seen as `\u{202e}`. The same text where there is nothing of that. */
export const visible = (text: string): string =>
  HIDDEN.test(text) ? text.replace(EACH, code) : text;
