// SPDX-License-Identifier: Apache-2.0
// Where something is to be done, as addresses and forms have it: KIND:NAME. Pure.

/** What the server takes; null where nothing is chosen. */
export function where(text: string): Record<string, string> | null {
  const mark = text.indexOf(":");
  const kind = text.slice(0, mark);
  const name = text.slice(mark + 1);
  return ["node", "group", "family"].includes(kind) && name !== "" ? { [kind]: name } : null;
}

/** The family of a node, web of web12@host: its name without the host and the number at the end. */
export const family = (node: string): string =>
  (node.split("@")[0] ?? node).replace(/[-_]?[0-9]+$/, "");
