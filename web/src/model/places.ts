// SPDX-License-Identifier: Apache-2.0
// Where something is to be done, as addresses and forms have it: KIND:NAME. Pure.

/** What the server takes; null where nothing is chosen. */
export function where(text: string): Record<string, string> | null {
  const mark = text.indexOf(":");
  const kind = text.slice(0, mark);
  const name = text.slice(mark + 1);
  return ["node", "group", "family"].includes(kind) && name !== "" ? { [kind]: name } : null;
}

/** web of web12@host. */
export const family = (node: string): string =>
  (node.split("@")[0] ?? node).replace(/[-_]?[0-9]+$/, "");
