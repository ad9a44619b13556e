// SPDX-License-Identifier: Apache-2.0

/** n1@host as n1, or as host, where that alone tells all these nodes apart; else in full. */
export function labeller(names: readonly string[]): (name: string) => string {
  for (const part of [before, after]) {
    if (new Set(names.map(part)).size === names.length && names.every((name) => name.includes("@")))
      return part;
  }
  return (name) => name;
}

const before = (name: string): string => name.slice(0, name.indexOf("@"));
const after = (name: string): string => name.slice(name.indexOf("@") + 1);
