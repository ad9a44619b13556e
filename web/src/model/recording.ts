// SPDX-License-Identifier: Apache-2.0
// Whether something is recorded now. The server tells when each file was written last, and this
// browser knows what it has started or stopped itself.
import type { Recording } from "./protocol";

/** What the server answered to this browser: the recording that it began, or null where it stopped one. */
export interface Told {
  name: string | null;
  /** Unix ms. */
  at: number;
}

/** Files are written at each frame, a second late at most, and their times are whole seconds. */
const LATE_MS = 3000;

/** The recording that is being written, or null. */
export function written(
  recordings: readonly Recording[],
  now: number,
  intervalMs: number,
  told: Told | null,
): string | null {
  const patience = 3 * intervalMs + LATE_MS;
  if (told !== null && told.name !== null && now - told.at < patience) return told.name;
  const since = told !== null && told.name === null ? told.at + LATE_MS : 0;
  const newest = recordings.reduce<Recording | null>(
    (best, one) => (best === null || one.modified > best.modified ? one : best),
    null,
  );
  if (newest === null || newest.modified < since) return null;
  return now - newest.modified < patience ? newest.name : null;
}
