// SPDX-License-Identifier: Apache-2.0
// Deep links: #/PAGE/ARGUMENT?query, all of it percent-encoded, so that any node or group name fits.

export const PAGES = [
  "groups",
  "matrix",
  "node",
  "traffic",
  "names",
  "events",
  "log",
  "findings",
  "alarms",
  "metrics",
  "deployments",
  "families",
  "actions",
  "audit",
  "profiles",
] as const;
/** Pages of a server that shows a profiler's recording, of events or of samples, and no cluster. */
export const PROFILES = ["profile", "samples"] as const;
export type PageName = (typeof PAGES)[number] | (typeof PROFILES)[number];

/** The one page of such a server. */
export function onlyPage(
  hello: { profile?: boolean; samples?: boolean } | null,
): (typeof PROFILES)[number] | null {
  if (hello?.profile !== true) return null;
  return hello.samples === true ? "samples" : "profile";
}

export interface Route {
  readonly page: PageName;
  readonly arg: string | null;
  readonly query: Readonly<Record<string, string>>;
}

/** Kept from page to page. */
const COMMON = ["t", "theme"];

export function parseRoute(hash: string): Route {
  const text = hash.replace(/^#\/?/, "");
  const mark = text.indexOf("?");
  const path = mark < 0 ? text : text.slice(0, mark);
  const query = Object.fromEntries(new URLSearchParams(mark < 0 ? "" : text.slice(mark + 1)));
  const [name, ...rest] = path.split("/");
  const page = ([...PAGES, ...PROFILES] as const).find((known) => known === name) ?? "groups";
  const arg = rest.length === 0 || rest[0] === "" ? null : decode(rest.join("/"));
  return { page, arg, query };
}

export function formatRoute(route: {
  page: PageName;
  arg?: string | null;
  query?: Record<string, string>;
}): string {
  const path = route.arg == null || route.arg === "" ? "" : `/${encodeURIComponent(route.arg)}`;
  const fields = Object.entries(route.query ?? {}).filter(([, value]) => value !== "");
  const query = new URLSearchParams(fields).toString();
  return `#/${route.page}${path}${query === "" ? "" : `?${query}`}`;
}

/** The query fields that go along when another page is opened. */
export function commonQuery(query: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(query).filter(([key]) => COMMON.includes(key)));
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text; // typed by hand, with a lone %
  }
}
