// SPDX-License-Identifier: Apache-2.0
// Which entries of the record are known, from answers that each tell a part of it.
import type { Done } from "../../model/protocol";

/** An answer of the service, or all that is known: every entry of a kind down to where `next` goes on. */
export interface Found {
  /** The newest first. */
  entries: Done[];
  next: string | null;
}

/**
 * The newest entries with those that are known. The service looks at a bounded number of entries, so an answer may have
 * few or none of a kind while there are older ones. Where some may be missing between, the known ones are left out:
 * where a full answer has none of them, or none was `recent`.
 */
export function withNewest(
  known: Found | null,
  newest: Found,
  limit: number,
  recent: boolean,
): Found {
  if (known === null || newest.next === null) return newest;
  const last = newest.entries.at(-1)?.number ?? Infinity;
  const overlaps = known.entries.some(({ number }) => number >= last);
  if (!overlaps && !(recent && newest.entries.length < limit)) return newest;
  return {
    entries: [...newest.entries, ...known.entries.filter(({ number }) => number < last)],
    next: known.next,
  };
}

/** With those that were asked for from `known.next` on. */
export function withOlder(known: Found, older: Found): Found {
  const have = new Set(known.entries.map(({ number }) => number));
  return {
    entries: [...known.entries, ...older.entries.filter(({ number }) => !have.has(number))],
    next: older.next,
  };
}
