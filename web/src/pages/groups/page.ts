// SPDX-License-Identifier: Apache-2.0
// Groups: the map of the cluster.
import type { Ctx, MountedPage, Page } from "../../ui/ctx";
import { takeHooks } from "../../ui/hooks";
import { emptyState, iconButton } from "../../ui/parts";
import { h } from "../../lib/dom";
import { FREE, FREE_NAME } from "../../model/flows";
import type { Match } from "../../model/search";
import { AGGREGATE_ABOVE, type Entity, type Level } from "../../model/scene";
import type { Change } from "../../store/signals";
import { groupsOf, nodesOf } from "./answers";
import { Input } from "./input";
import { legend } from "./legend";
import { Panel } from "./panel";
import { asMinimum, Toolbar } from "./toolbar";
import { Tooltip } from "./tooltip";
import { GroupView, type ViewOptions } from "./view";
import "./groups.css";

const WIDE = "(min-width: 861px)";

class GroupsPage implements MountedPage {
  private readonly map = h("div", { class: "map" });
  private readonly view: GroupView;
  private readonly tooltip: Tooltip;
  private readonly panel: Panel;
  private readonly toolbar: Toolbar;
  /** Said where the address names a group that is not there. */
  private readonly missing = h("p", { class: "map-notice", role: "status", hidden: true });
  /** The address's group, and what is to be marked when the next group has opened. */
  private arg: string | null = null;
  private arriving: string | null = null;
  private readonly empty = h("div", { class: "map-empty", hidden: true });
  private legendElement: HTMLElement;
  private legendOf = "";
  private readonly giveBack: () => void;
  private readonly input: Input;
  private readonly wide = matchMedia(WIDE);
  private readonly widthChanged = () => this.showLegend();

  constructor(
    private readonly root: HTMLElement,
    private readonly ctx: Ctx,
  ) {
    root.classList.add("groups-page");
    this.legendElement = h("div");
    root.append(this.map);
    this.view = new GroupView(ctx, this.map, () => this.insets());
    this.tooltip = new Tooltip(ctx, this.view, () => this.taken());
    this.panel = new Panel(ctx, this.view, (key) => this.point(key));
    this.toolbar = new Toolbar((options) => this.setOptions(options), {
      find: () => this.view.matches,
      goTo: (match) => this.goTo(match),
      open: (match) =>
        match.kind === "node" ? ctx.go("node", match.name) : this.openGroup(match.id),
      dark: () => ctx.palette.dark,
    });
    this.input = new Input(ctx, this.view, {
      pointed: () => this.pointed(),
      enter: (entity) => this.enter(entity),
      openGroup: (group) => this.openGroup(group),
      leave: () => this.leave(),
      search: () => this.toolbar.search.focus(),
      describe: (entity) => this.tooltip.describe(entity),
    });
    this.toolbar.element.append(this.missing);
    this.map.append(this.toolbar.element, this.buttons(), this.tooltip.element, this.empty);
    root.append(this.panel.element);
    this.panel.close.addEventListener("click", () => this.showPanel(false));
    this.wide.addEventListener("change", this.widthChanged);
    this.view.onMoved = () => this.tooltip.update();
    this.view.onScene = () => this.tooltip.update();
    this.giveBack = takeHooks(ctx.store, {
      nodes: () => nodesOf(ctx.store.shown.topology, this.view),
      groups: () => groupsOf(ctx.store.shown.topology, this.view),
      fps: () => this.view.fps(),
    });
    this.routed();
    this.view.topologyChanged();
    this.showEmpty();
    this.panel.update();
    this.showLegend();
  }

  update(change: Change): void {
    if (change.has("route")) this.routed();
    if (change.has("topology")) {
      this.view.topologyChanged();
      this.routed();
    }
    if (change.has("frame")) this.view.frameChanged();
    if (change.has("theme") || change.has("findings")) this.view.request();
    if (change.has("topology") || change.has("frame") || change.has("connection")) this.showEmpty();
    this.panel.update();
    this.tooltip.update();
    this.showLegend();
  }

  destroy(): void {
    this.giveBack();
    this.wide.removeEventListener("change", this.widthChanged);
    this.input.destroy();
    this.panel.destroy();
    this.view.destroy();
    this.root.replaceChildren();
  }

  /** The address decides: which group is open, how it is measured, what is searched. */
  private routed(): void {
    const { route } = this.ctx;
    const topology = this.ctx.store.shown.topology;
    const { query } = route;
    const options: ViewOptions = {
      level:
        query["level"] === "groups" || query["level"] === "nodes"
          ? (query["level"] as Level)
          : "auto",
      measure: query["by"] === "bytes" ? "bytes" : "msgs",
      minimum: asMinimum(query["min"]),
      scale: query["scale"] === "relative" ? "relative" : "",
      search: query["q"] ?? "",
    };
    this.view.setOptions(options);
    this.toolbar.show(options);
    const open =
      route.arg === null
        ? null
        : route.arg === FREE_NAME
          ? FREE
          : (topology?.groupNamed(route.arg)?.id ?? null);
    if (route.arg !== this.arg) {
      // What was pointed at belongs to the group before.
      this.arg = route.arg;
      this.view.forget(this.arriving);
      this.arriving = null;
    }
    this.showMissing(open === null ? route.arg : null);
    this.view.setOpen(open);
    if (this.view.pinned !== null) this.view.reveal(this.view.pinned);
  }

  /** A link or an old address may name a group that is not there. */
  private showMissing(name: string | null): void {
    const { topology } = this.ctx.store.shown;
    this.missing.hidden = name === null || topology === null;
    if (name === null || topology === null || this.missing.dataset["group"] === name) return;
    this.missing.dataset["group"] = name;
    this.missing.replaceChildren(
      h("strong", {}, `There is no group “${name}” at this time.`),
      " It may have been deleted, or not yet created. ",
      h("a", { href: this.ctx.href("events", null, { group: name }) }, "Its events"),
      " · ",
      h("a", { href: this.ctx.href("groups", null, this.kept()) }, "All groups"),
    );
  }

  /** What the search found: in sight, and marked. */
  private goTo({ kind, id, name }: Match): void {
    if (kind === "group") return this.openGroup(id);
    const key = `n:${name}`;
    const groups = this.ctx.store.shown.topology?.node(id)?.groups ?? [];
    const places = groups.length === 0 ? [FREE] : groups;
    const { open } = this.view;
    if ((open !== null && !places.includes(open)) || this.view.indexOf(key) < 0) {
      this.arriving = key;
      this.openGroup(places[0]);
    }
    this.view.pinned = key;
    this.view.reveal(key);
    this.pointed();
  }

  private setOptions(options: Partial<ViewOptions>): void {
    const all = { ...this.view.options, ...options };
    this.ctx.setQuery({
      level: all.level === "auto" ? "" : all.level,
      by: all.measure === "msgs" ? "" : all.measure,
      scale: all.scale,
      min: all.minimum === 0 ? "" : String(all.minimum),
      q: all.search,
    });
  }

  private openGroup(group: number | null): void {
    const name =
      group === null
        ? null
        : group === FREE
          ? FREE_NAME
          : (this.ctx.store.shown.topology?.group(group)?.name ?? null);
    this.view.pinned = null;
    this.ctx.go("groups", name, this.kept());
  }

  private enter(entity: Entity): void {
    if (entity.kind === "bubble") this.openGroup(entity.groups[0]);
    else this.ctx.go("node", entity.label);
  }

  /** Escape: what is pinned, then the search, then the group, then the camera. */
  private leave(): void {
    if (this.view.pinned !== null) this.view.pinned = null;
    else if (this.view.options.search !== "") this.setOptions({ search: "" });
    else if (this.view.open !== null) this.openGroup(null);
    else this.view.fit();
    this.pointed();
  }

  private point(key: string | null): void {
    this.view.hovered = key !== null && this.view.indexOf(key) < 0 ? null : key;
    this.pointed();
  }

  private pointed(): void {
    // What a finger chose on the map is not to be covered by the list.
    if (this.view.pinned !== null || this.view.hoveredEdge >= 0) {
      this.showPanel(false);
      this.root.classList.remove("legend-open");
    }
    this.tooltip.update();
    this.view.request();
  }

  private kept(): Record<string, string> {
    const { level, by, min, scale, q } = this.ctx.route.query;
    return Object.fromEntries(
      Object.entries({ level, by, min, scale, q }).filter(([, value]) => value !== undefined),
    ) as Record<string, string>;
  }

  private buttons(): HTMLElement {
    return h(
      "div",
      { class: "map-buttons card" },
      iconButton("plus", "Zoom in (+)", () => this.view.zoomBy(1.5)),
      iconButton("minus", "Zoom out (-)", () => this.view.zoomBy(1 / 1.5)),
      iconButton("fit", "Show all (0)", () => this.view.fit()),
      iconButton("menu", "List", () => this.showPanel(true), { class: "icon-button list-button" }),
      iconButton("help", "Legend", () => this.toggleLegend(), {
        class: "icon-button legend-button",
      }),
    );
  }

  /** On a phone: the list over the lower part of the map, which moves up. */
  private showPanel(open: boolean): void {
    if (this.root.classList.contains("panel-open") === open) return;
    if (open) this.view.forget(null);
    this.root.classList.toggle("panel-open", open);
    if (this.view.camera.automatic) this.view.fit();
  }

  /** On a phone it has the place of what is told of a node. */
  private toggleLegend(): void {
    if (this.root.classList.toggle("legend-open")) this.view.forget(null);
    this.tooltip.update();
    this.view.request();
  }

  private taken(): { top: number; bottom: number } {
    const sheet = !this.wide.matches && this.root.classList.contains("panel-open");
    return {
      top: this.wide.matches ? 0 : this.toolbar.element.offsetHeight + 8,
      bottom: sheet ? this.panel.element.offsetHeight : 0,
    };
  }

  private insets() {
    const top = this.toolbar.element.offsetHeight + (this.wide.matches ? 32 : 24);
    return this.wide.matches
      ? { top, right: 24, bottom: 24, left: 24 }
      : {
          top,
          right: 12,
          bottom: this.root.classList.contains("panel-open")
            ? this.panel.element.offsetHeight + 12
            : 64,
          left: 12,
        };
  }

  private showLegend(): void {
    const many = (this.ctx.store.shown.topology?.nodes.length ?? 0) > AGGREGATE_ABOVE;
    const { scale } = this.view.edges;
    const key = `${this.wide.matches}${this.view.options.measure}${scale.low}/${scale.high}${this.ctx.palette.dark}${many}`;
    if (key === this.legendOf) return;
    this.legendOf = key;
    const next = legend(this.view.options.measure, scale, this.ctx.palette.dark, many);
    this.legendElement.remove();
    this.legendElement = next;
    // Beside the map where there is room, else over it when asked for.
    (this.wide.matches ? this.panel.element : this.map).append(next);
  }

  private showEmpty(): void {
    const { store } = this.ctx;
    const { topology } = store.shown;
    const nothing = topology === null || topology.nodes.length === 0;
    this.empty.hidden = !nothing;
    this.root.classList.toggle("nothing", nothing);
    if (!nothing) return;
    this.empty.replaceChildren(
      topology === null
        ? emptyState(
            store.connection === "connected" ? "Waiting for the cluster" : "Connecting",
            "The map appears with the server's first answer.",
          )
        : emptyState(
            "No nodes yet",
            "The monitor sees no node of this cluster. It shows the first one as soon as it is up and can be reached.",
          ),
    );
  }
}

export const page: Page = { mount: (root, ctx) => new GroupsPage(root, ctx) };
