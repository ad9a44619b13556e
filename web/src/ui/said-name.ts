// SPDX-License-Identifier: Apache-2.0
// The name that a person gives on the page of alarms, kept in the browser: the audit log has it where
// several people use one token.
const KEY = "sderl.name";

/** A browser may keep nothing, and say so by throwing. */
export function saidName(): string {
  try {
    return localStorage.getItem(KEY) ?? "";
  } catch {
    return "";
  }
}

export function keepName(name: string): void {
  try {
    localStorage.setItem(KEY, name);
  } catch {
    // Until the page is closed, then.
  }
}
