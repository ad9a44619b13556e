// SPDX-License-Identifier: Apache-2.0
// Header, page and time bar; one page at a time is mounted.
import { keepToken } from "../store/token";
import type { Store } from "../store/store";
import type { Change } from "../store/signals";
import { h } from "../lib/dom";
import { visible } from "../lib/visible";
import type { Ctx, MountedPage, Page } from "../ui/ctx";
import { Header } from "./header";
import { Help } from "./help";
import { Keys } from "../ui/keys";
import { Banner, tokenForm } from "./notice";
import { emptyState } from "../ui/parts";
import { LOADERS, TITLES } from "./pages";
import {
  commonQuery,
  formatRoute,
  PAGES,
  type PageName,
  onlyPage,
  parseRoute,
  type Route,
} from "../ui/router";
import {
  applyTheme,
  asTheme,
  onSystemTheme,
  type Palette,
  readPalette,
  storedTheme,
  type Theme,
} from "../ui/theme";
import { TimeBar } from "./timebar";
import { Toasts } from "./toast";

/** The version of the protocol that this page speaks. */
const PROTOCOL = 1;
const NEXT_THEME: Record<Theme, Theme> = { system: "light", light: "dark", dark: "system" };

/** The keys of the pages, in their order: the digits, then letters that no page uses for itself. */
const PAGE_KEYS = "1234567890dacup";

export class Shell implements Ctx {
  readonly keys = new Keys();
  route: Route = parseRoute(location.hash);
  palette: Palette;
  private readonly toasts = new Toasts();
  private readonly help = new Help(this.keys);
  private readonly header: Header;
  private readonly banner: Banner;
  private readonly timeBar: TimeBar;
  private readonly main = h("main", { class: "main", id: "main", tabindex: "-1" });
  private readonly live = h("div", {
    class: "visually-hidden",
    role: "status",
    "aria-live": "polite",
  });
  private theme: Theme;
  private mounted: { name: PageName; of: string | undefined; page: MountedPage } | null = null;
  private mounting: PageName | null = null;
  private refusedShown = false;
  private endedShown: Store["ended"] = null;
  private releasePages: () => void = () => undefined;

  constructor(
    readonly store: Store,
    root: HTMLElement,
  ) {
    this.theme = "theme" in this.route.query ? asTheme(this.route.query["theme"]) : storedTheme();
    applyTheme(this.theme, false);
    this.palette = readPalette();
    this.header = new Header(store, {
      help: () => this.help.toggle(),
      cycleTheme: () => this.setTheme(NEXT_THEME[this.theme]),
      explain: (text) => this.toast(text, "info"),
    });
    this.banner = new Banner(store);
    this.timeBar = new TimeBar(this);
    root.replaceChildren(
      h(
        "a",
        { class: "skip", href: "#main", onclick: (event) => this.skip(event) },
        "Skip to the page",
      ),
      this.header.element,
      this.banner.element,
      this.main,
      this.timeBar.element,
      this.toasts.element,
      this.help.element,
      this.timeBar.dialog,
      this.live,
    );
    this.header.showTheme(this.theme);
    this.addKeys();
    addEventListener("keydown", (event) => this.keys.handle(event));
    addEventListener("hashchange", () => this.routed());
    document.addEventListener("visibilitychange", () => store.rest(document.hidden));
    onSystemTheme(() => this.themeChanged());
    store.notify = (text) => this.toast(text);
    store.on((change) => this.changed(change));
    this.routed();
    this.changed(new Set(["connection", "findings", "alarms", "frame", "time"]));
  }

  go(page: PageName, arg: string | null = null, query: Record<string, string> = {}): void {
    location.hash = this.href(page, arg, query);
  }

  href(page: PageName, arg: string | null = null, query: Record<string, string> = {}): string {
    return formatRoute({ page, arg, query: { ...query, ...commonQuery(this.route.query) } });
  }

  setQuery(query: Record<string, string>): void {
    const next = formatRoute({
      page: this.route.page,
      arg: this.route.arg,
      query: { ...this.route.query, ...query },
    });
    if (next === location.hash) return;
    history.replaceState(null, "", next);
    this.routed();
  }

  toast(text: string, level: "info" | "error" = "error"): void {
    this.toasts.show(text, level);
  }

  announce(text: string): void {
    this.live.textContent = visible(text);
  }

  private changed(change: Change): void {
    this.header.update(change);
    if (change.has("hello")) this.arrived();
    this.timeBar.update(change);
    if (change.has("hello") && this.store.hello?.version !== PROTOCOL)
      this.toast("The server speaks another version than this page: load the page again");
    if (change.has("connection")) this.connectionChanged();
    if (!this.refusedShown) this.mounted?.page.update?.(change);
  }

  /** A profiler's recording has one page, and no time bar. */
  private arrived(): void {
    const only = onlyPage(this.store.hello);
    if (only === null) return;
    this.timeBar.leave();
    this.releasePages();
    if (this.route.page !== only)
      location.replace(formatRoute({ page: only, query: commonQuery(this.route.query) }));
  }

  private connectionChanged(): void {
    this.banner.update();
    const refused = this.store.connection === "refused";
    const { ended } = this.store;
    if (refused === this.refusedShown && (!refused || ended === this.endedShown)) return;
    this.refusedShown = refused;
    this.endedShown = ended;
    this.unmount();
    if (refused) this.main.replaceChildren(tokenForm((token) => this.entered(token), ended));
    else void this.mount(this.route.page);
  }

  private entered(token: string): void {
    keepToken(token);
    this.store.retry();
  }

  private routed(): void {
    this.route = parseRoute(location.hash);
    if ("theme" in this.route.query && asTheme(this.route.query["theme"]) !== this.theme) {
      this.theme = asTheme(this.route.query["theme"]);
      this.themeChanged();
    }
    this.header.showRoute(this.route);
    this.timeBar.routed();
    document.title = visible(
      [this.route.arg, TITLES[this.route.page], "SD Erlang"].filter(Boolean).join(" · "),
    );
    if (this.refusedShown) return;
    // The page of another recording is another page.
    if (this.mounted?.name === this.route.page && this.mounted.of === this.route.query["of"])
      this.mounted.page.update?.(new Set(["route"]));
    else void this.mount(this.route.page);
  }

  private async mount(name: PageName): Promise<void> {
    if (this.mounting === name) return;
    this.mounting = name;
    let page: Page;
    try {
      ({ page } = await LOADERS[name]());
    } catch {
      this.mounting = null;
      this.unmount();
      this.main.replaceChildren(
        emptyState(
          "This page could not be loaded",
          "The server does not answer, or it was updated: load the page again.",
        ),
      );
      return;
    }
    // Another page may have been asked for meanwhile.
    if (this.mounting !== name) return;
    this.mounting = null;
    if (this.refusedShown) return;
    this.unmount();
    const root = h("div", { class: `page page-${name}` });
    this.main.replaceChildren(root);
    this.mounted = { name, of: this.route.query["of"], page: page.mount(root, this) };
  }

  private unmount(): void {
    this.mounted?.page.destroy();
    this.mounted = null;
  }

  private setTheme(theme: Theme): void {
    this.theme = theme;
    applyTheme(theme, true);
    if ("theme" in this.route.query) this.setQuery({ theme: "" });
    this.themeChanged();
  }

  private themeChanged(): void {
    applyTheme(this.theme, false);
    this.palette = readPalette();
    this.header.showTheme(this.theme);
    this.store.tell("theme");
  }

  private skip(event: Event): void {
    event.preventDefault(); // the fragment is the route's
    this.main.focus();
  }

  private addKeys(): void {
    const pages = PAGES.map((page, i) => ({
      key: PAGE_KEYS[i],
      text: TITLES[page],
      section: "Pages",
      run: () => this.go(page),
    }));
    this.releasePages = this.keys.add(...pages);
    this.keys.add(
      {
        key: "t",
        text: "Light, dark or as the system",
        section: "Everywhere",
        run: () => this.setTheme(NEXT_THEME[this.theme]),
      },
      { key: "?", text: "This sheet", section: "Everywhere", run: () => this.help.toggle() },
    );
  }
}
