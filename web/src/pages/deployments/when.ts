// SPDX-License-Identifier: Apache-2.0
import { clock, dateTime } from "../../lib/format";

/** A time as RFC 3339 has it, in the time of whoever looks; on a narrow screen without its day. */
export function when(at: string): string {
  const t = Date.parse(at);
  if (Number.isNaN(t)) return at;
  return isNarrow() ? clock(t) : dateTime(t);
}

export const isNarrow = (): boolean => matchMedia("(max-width: 640px)").matches;
