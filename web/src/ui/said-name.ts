// SPDX-License-Identifier: Apache-2.0
// The name of a person, as said on the page of alarms: the audit log has it where several use one token.

export function saidName(): string {
  try {
    return localStorage.getItem("sderl.name") ?? "";
  } catch {
    return "";
  }
}
