// SPDX-License-Identifier: Apache-2.0

/** n1@host -> n1 where all nodes share that host. */
export function shortNode(name: string, host: string | null): string {
  return host !== null && name.endsWith(`@${host}`) ? name.slice(0, -host.length - 1) : name;
}

/** The host that all names share, or null. */
export function commonHost(names: Iterable<string>): string | null {
  let host: string | null = null;
  for (const name of names) {
    const own = name.slice(name.indexOf("@") + 1);
    if (host === null) host = own;
    else if (host !== own) return null;
  }
  return host;
}
