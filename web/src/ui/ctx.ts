// SPDX-License-Identifier: Apache-2.0
// What a page is given, and what it gives back.
import type { Store } from "../store/store";
import type { Change } from "../store/signals";
import type { Keys } from "./keys";
import type { PageName, Route } from "./router";
import type { Palette } from "./theme";

export interface Ctx {
  readonly store: Store;
  /** Where the address bar is; a new object with each change. */
  readonly route: Route;
  /** Colours for canvases, of the theme now shown. */
  readonly palette: Palette;
  readonly keys: Keys;
  /** Goes to another page; t and theme go along. */
  go(page: PageName, arg?: string | null, query?: Record<string, string>): void;
  /** Changes this page's query in place, without a step in the browser's history; "" removes a field. */
  setQuery(query: Record<string, string>): void;
  /** The address of a page, for <a href>. */
  href(page: PageName, arg?: string | null, query?: Record<string, string>): string;
  toast(text: string, level?: "info" | "error"): void;
  /** Said to screen readers, politely. */
  announce(text: string): void;
}

export interface MountedPage {
  /** At most once per animation frame, with what changed; "route" when only argument or query did. */
  update?(change: Change): void;
  destroy(): void;
}

export interface Page {
  mount(root: HTMLElement, ctx: Ctx): MountedPage;
}
