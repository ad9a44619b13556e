// SPDX-License-Identifier: Apache-2.0
// The bar at the top: where one is, where one can go, and how the connection is.
import type { Store } from "../store/store";
import type { Change } from "../store/signals";
import { openAlarms } from "../model/alarms";
import { h, s, set, text as setText } from "../lib/dom";
import { count } from "../lib/format";
import { clusterSource, type Source } from "../model/probe";
import { icon, type IconName } from "../ui/icons";
import { TITLES } from "./pages";
import { commonQuery, formatRoute, onlyPage, PAGES, PROFILES, type Route } from "../ui/router";
import type { Theme } from "../ui/theme";

/** What a chip of the header says, the same where there is little room, and what it means. */
const SOURCES: Record<Source, [string, string, string]> = {
  stock: [
    "No probes",
    "No probes",
    "No probe reports to this monitor, so only what stock OTP reports is shown. A node's page says why, and what to do.",
  ],
  mixed: [
    "Some without a probe",
    "Some unprobed",
    "Of nodes without a probe that reports to this monitor, only what stock OTP reports is shown. A node's page says why, and what to do.",
  ],
  elsewhere: [
    "Probes report to another monitor",
    "Probes elsewhere",
    "The probes report to other monitoring nodes, and to one set of them at a time. So only what stock OTP reports is shown.",
  ],
  synthetic: ["Synthetic", "Synthetic", "Made-up data, no cluster."],
};
const THEMES: Record<Theme, [IconName, string]> = {
  system: ["system", "Theme: as the system"],
  light: ["sun", "Theme: light"],
  dark: ["moon", "Theme: dark"],
};

export interface HeaderActions {
  help(): void;
  cycleTheme(): void;
  /** Shows what a title says: a finger cannot point at it. */
  explain(text: string): void;
}

export class Header {
  readonly element: HTMLElement;
  private readonly links = new Map<string, HTMLAnchorElement>();
  private readonly nav = h("nav", { class: "nav", id: "nav", "aria-label": "Pages" });
  private readonly cluster = h("span", { class: "cluster" });
  private readonly source: HTMLButtonElement;
  private readonly monitors = h("span", { class: "chip", "data-testid": "monitors", hidden: true });
  private readonly losses = h("span", { class: "chip chip-warning" });
  private readonly connection = h("span", {
    class: "connection",
    "data-testid": "connection",
    role: "status",
  });
  private readonly badge = h("span", { class: "badge" });
  private readonly alarms = h("span", { class: "badge" });
  private readonly theme: HTMLButtonElement;
  private readonly menu: HTMLButtonElement;

  constructor(
    private readonly store: Store,
    actions: HeaderActions,
  ) {
    for (const page of [...PAGES, ...PROFILES] as const) {
      const link = h(
        "a",
        { class: "nav-link", "data-testid": `nav-${page}`, onclick: () => this.toggleMenu(false) },
        TITLES[page],
      );
      if (page === "findings") link.append(this.badge);
      if (page === "alarms") link.append(this.alarms);
      link.hidden = page === "profiles" || PROFILES.some((one) => one === page);
      this.links.set(page, link);
      this.nav.append(link);
    }
    this.theme = h("button", {
      class: "icon-button",
      "data-testid": "theme",
      onclick: () => actions.cycleTheme(),
    });
    this.menu = h(
      "button",
      {
        class: "icon-button menu-button",
        "aria-label": "Menu",
        "aria-controls": "nav",
        "aria-expanded": "false",
        onclick: () => this.toggleMenu(),
      },
      icon("menu"),
    );
    this.source = h("button", {
      type: "button",
      class: "chip chip-source",
      "data-testid": "source",
      hidden: true,
      onclick: () => actions.explain(this.source.title),
    });
    this.element = h(
      "header",
      { class: "header" },
      h(
        "a",
        { class: "brand", href: "#/groups", "aria-label": "SD Erlang" },
        logo(),
        h("span", { class: "brand-name" }, "SD Erlang"),
      ),
      this.cluster,
      this.nav,
      h("span", { class: "spring" }),
      this.losses,
      this.monitors,
      this.source,
      this.connection,
      this.theme,
      h(
        "button",
        {
          class: "icon-button help-button",
          "aria-label": "Keyboard shortcuts",
          title: "Keyboard shortcuts (?)",
          onclick: () => actions.help(),
        },
        icon("help"),
      ),
      this.menu,
    );
    document.addEventListener("pointerdown", (event) => {
      if (!this.element.contains(event.target as Node)) this.toggleMenu(false);
    });
  }

  showTheme(theme: Theme): void {
    const [name, label] = THEMES[theme];
    this.theme.replaceChildren(icon(name));
    this.theme.setAttribute("aria-label", label);
    this.theme.title = label;
  }

  showRoute(route: Route): void {
    const query = commonQuery(route.query);
    for (const [page, link] of this.links) {
      link.href = formatRoute({ page: page as Route["page"], query });
      if (page === shownAs(route)) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
    }
  }

  update(change: Change): void {
    if (change.has("hello")) {
      const { hello } = this.store;
      const only = onlyPage(hello);
      const absent: string[] =
        hello?.profiling === true ? [...PROFILES] : ["profiles", ...PROFILES];
      for (const [page, link] of this.links)
        link.hidden = only === null ? absent.includes(page) : page !== only;
    }
    if (change.has("connection") || change.has("hello")) this.showConnection();
    if (change.has("topology")) {
      this.showMonitors();
      this.showConnection();
    }
    if (change.has("findings")) this.showFindings();
    if (change.has("alarms")) this.showAlarms();
    if (change.has("frame") || change.has("connection")) this.showLosses();
  }

  private showConnection(): void {
    const { connection, hello, recording } = this.store;
    setText(this.connection, connection);
    this.connection.dataset["state"] = connection;
    this.connection.title = connection;
    setText(this.cluster, recording ?? hello?.cluster ?? "");
    set(this.cluster, "title", this.cluster.textContent);
    const source = clusterSource(hello?.mode, this.store.shown.topology?.nodes ?? []);
    this.source.hidden = source === null;
    if (source === null || this.source.dataset["source"] === source) return;
    const [long, short, meaning] = SOURCES[source];
    this.source.dataset["source"] = source;
    this.source.title = meaning;
    this.source.replaceChildren(
      h("span", { class: "long" }, long),
      h("span", { class: "short" }, short),
    );
  }

  private showFindings(): void {
    const { shown, triage } = this.store;
    const bad = triage.open(shown.findings).filter((finding) => finding.severity !== "info");
    showBadge(
      this.badge,
      bad.length,
      bad.some((finding) => finding.severity === "critical"),
    );
  }

  private showAlarms(): void {
    const raised = openAlarms(this.store.alarms?.alarms ?? []);
    showBadge(
      this.alarms,
      raised.length,
      raised.some((alarm) => alarm.severity === "major"),
    );
  }

  /** Who watches; it is of interest when there are several, of which one may be down. */
  private showMonitors(): void {
    const monitors = this.store.shown.topology?.monitors ?? [];
    const up = monitors.filter((monitor) => monitor.status === "up").length;
    this.monitors.hidden = monitors.length < 2;
    this.monitors.classList.toggle("chip-warning", up < monitors.length);
    setText(
      this.monitors,
      up < monitors.length ? `${up} of ${monitors.length} monitors` : `${up} monitors`,
    );
    const each = monitors
      .map(
        ({ node, status, master, agents }) =>
          `${node}: ${status}${master ? ", master" : ""}, ${agents} ${agents === 1 ? "agent" : "agents"}`,
      )
      .join("\n");
    set(this.monitors, "title", each);
  }

  /** How much did not come to this page, by cause. */
  private showLosses(): void {
    const lost = [...this.store.losses];
    if (this.store.missed > 0)
      lost.push(["frames this browser was too slow for", this.store.missed]);
    if (this.store.missedEvents > 0)
      lost.push(["events this browser was too slow for", this.store.missedEvents]);
    const sum = lost.reduce((total, [, n]) => total + n, 0);
    this.losses.hidden = sum === 0;
    if (sum === 0) return;
    setText(this.losses, `${count(sum)} not shown`);
    this.losses.title = [
      "Since this page was connected:",
      ...lost.map(([what, n]) => `${what.replaceAll("_", " ")}: ${count(n)}`),
    ].join("\n");
  }

  private toggleMenu(open = !this.element.classList.contains("menu-open")): void {
    this.element.classList.toggle("menu-open", open);
    this.menu.setAttribute("aria-expanded", String(open));
  }
}

/** A profile of the cluster is shown under the list of profiles. */
const shownAs = ({ page, query }: Route): string =>
  PROFILES.some((one) => one === page) && query["of"] !== undefined ? "profiles" : page;

function showBadge(badge: HTMLElement, n: number, critical: boolean): void {
  setText(badge, n === 0 ? "" : String(n));
  badge.hidden = n === 0;
  badge.dataset["severity"] = critical ? "critical" : "warning";
  badge.setAttribute("aria-label", `${n} to look at`);
}

function logo(): SVGSVGElement {
  return s(
    "svg",
    { viewBox: "0 0 32 32", class: "logo", "aria-hidden": "true" },
    s("circle", { cx: 12, cy: 12, r: 9, class: "logo-a" }),
    s("circle", { cx: 20, cy: 20, r: 9, class: "logo-b" }),
    s("circle", { cx: 16, cy: 16, r: 3.4, class: "logo-c" }),
  );
}
