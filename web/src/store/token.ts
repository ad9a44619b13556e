// SPDX-License-Identifier: Apache-2.0
// The token comes in the address (#token=.., ?token=..), is kept for the tab, and leaves the
// address bar at once: it must not be bookmarked, nor copied with a deep link.

const KEY = "sderl.token";

export interface Taken {
  token: string | null;
  /** The address without the token, or null where there was none in it. */
  clean: string | null;
}

/** Pure: the token in an address and the address without it. */
export function takeToken(href: string): Taken {
  const url = new URL(href);
  let token = url.searchParams.get("token");
  url.searchParams.delete("token");
  const hash = url.hash.replace(/^#/, "");
  const mark = hash.indexOf("?");
  const path = hash.startsWith("/") ? (mark < 0 ? hash : hash.slice(0, mark)) : "";
  const query = hash.startsWith("/") ? (mark < 0 ? "" : hash.slice(mark + 1)) : hash;
  const fields = new URLSearchParams(query);
  token = fields.get("token") ?? token;
  if (token === null) return { token: null, clean: null };
  fields.delete("token");
  const rest = fields.toString();
  url.hash =
    path === "" && rest === "" ? "" : (path || "/groups") + (rest === "" ? "" : `?${rest}`);
  return { token, clean: url.href };
}

export function readToken(): string | null {
  const taken = takeToken(location.href);
  if (taken.clean !== null) history.replaceState(null, "", taken.clean);
  try {
    if (taken.token !== null) sessionStorage.setItem(KEY, taken.token);
    return taken.token ?? sessionStorage.getItem(KEY);
  } catch {
    return taken.token; // a browser that keeps nothing
  }
}

export function keepToken(token: string): void {
  try {
    sessionStorage.setItem(KEY, token);
  } catch {
    // only this page has it then
  }
}
