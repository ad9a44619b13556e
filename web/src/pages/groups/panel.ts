// SPDX-License-Identifier: Apache-2.0
// The same as a list: groups, or the nodes of the open one. It is also what a screen reader reads
// in place of the canvas, so it is never taken out of the page, only out of sight.
import type { Ctx } from "../../ui/ctx";
import { icon } from "../../ui/icons";
import { byteRate, count, messageRate, number } from "../../lib/format";
import { h, text } from "../../lib/dom";
import type { TopologyNode } from "../../model/protocol";
import { FREE, HIDDEN } from "../../model/flows";
import { flowOf, namesOf } from "../../model/known";
import { labeller } from "../../model/node-names";
import { swatch } from "../../ui/patterns";
import type { GroupView } from "./view";

/** Rows that are made at once: first about those that are in sight, the others after the picture. */
const FIRST = 40;
const PART = 100;
const AFTER_PICTURE_MS = 100;

export class Panel {
  private readonly content = h("div", { class: "panel-content" });
  readonly element = h("aside", { class: "panel", "aria-label": "Groups and nodes" }, this.content);
  /** A phone's: there the list lies over the map. */
  readonly close = h(
    "button",
    { class: "icon-button panel-close", "aria-label": "Close the list" },
    icon("close"),
  );
  private readonly rates = new Map<string, HTMLElement>();
  /** What goes past the gateways, and with what is inside the groups all traffic. */
  private readonly sum = h("p", { class: "muted num", "data-testid": "between" });
  private madeOf = "";
  /** Of a list that is made in parts, when the next one comes. */
  private next: ReturnType<typeof setTimeout> | undefined;

  constructor(
    private readonly ctx: Ctx,
    private readonly view: GroupView,
    private readonly point: (key: string | null) => void,
  ) {
    this.element.append(this.close);
  }

  update(): void {
    const { topology } = this.ctx.store.shown;
    if (topology === null) return;
    const open = this.view.open === null ? undefined : topology.group(this.view.open);
    const free = topology.nodes.filter((node) => node.groups.length === 0);
    const key = `${topology.epoch}/${topology.t}/${open?.id ?? ""}/${this.ctx.palette.dark}/${this.ctx.route.query["t"] ?? ""}/${this.view.options.measure}`;
    if (key !== this.madeOf) {
      this.madeOf = key;
      clearTimeout(this.next);
      this.rates.clear();
      if (open !== undefined)
        this.showGroup(
          open.name,
          open.id,
          open.nodes.map((id) => topology.node(id)).filter((node) => node !== undefined),
        );
      else if (this.view.open === FREE) this.showGroup("Nodes in no group", FREE, free);
      else this.showGroups(free.length);
    }
    this.showRates();
  }

  private showGroups(free: number): void {
    const { topology } = this.ctx.store.shown;
    const groups = topology?.groups ?? [];
    const messages = this.view.options.measure === "msgs";
    const gateways = (topology?.nodes ?? []).filter((node) => node.groups.length > 1).length;
    const row = (id: number, name: string, nodes: number, down: number) => {
      const rate = h("span", { class: "panel-rate" });
      this.rates.set(`g${id}`, rate);
      return h(
        "li",
        {},
        h(
          "a",
          {
            class: "panel-row",
            href: id === FREE ? this.ctx.href("groups", "(free)") : this.ctx.href("groups", name),
            "data-group": name,
            onpointerenter: (event: Event) => this.hover(event, `b:${name}`),
            onpointerleave: () => this.point(null),
          },
          swatch(id, this.ctx.palette.dark),
          h("span", { class: "panel-name", title: name }, name),
          down > 0
            ? h("span", { class: "panel-down", title: `${down} not up` }, `${down} !`)
            : null,
          h("span", { class: "panel-count" }, count(nodes)),
          rate,
        ),
      );
    };
    const list = h("ul", { class: "panel-list" });
    const notUp = (ids: readonly number[]) =>
      ids.filter((id) => topology?.node(id)?.status !== "up").length;
    this.content.replaceChildren(
      h(
        "header",
        { class: "panel-head" },
        h("h2", {}, count(groups.length), groups.length === 1 ? " group" : " groups"),
        h(
          "p",
          { class: "muted" },
          `${count(topology?.nodes.length ?? 0)} nodes, ${count(gateways)} of them gateways`,
        ),
        this.sum,
      ),
      h(
        "div",
        { class: "panel-columns", "aria-hidden": "true" },
        h("span", {}, "group"),
        h("span", { class: "panel-count" }, "nodes"),
        h("span", { class: "panel-rate" }, messages ? "msg/s inside" : "inside"),
      ),
      list,
    );
    this.list(list, [
      ...groups.map(
        (group) => () => row(group.id, group.name, group.nodes.length, notUp(group.nodes)),
      ),
      ...(free > 0 ? [() => row(FREE, "(free)", free, 0)] : []),
    ]);
  }

  /** A long list comes part by part, so that the picture need not wait for it. */
  private list(list: Element, rows: readonly (() => Element)[], part = FIRST): void {
    list.append(...rows.slice(0, part).map((make) => make()));
    if (rows.length <= part) return;
    this.next = setTimeout(
      () => {
        const rest = rows.slice(part);
        this.list(list, rest, PART);
        if (rest.length <= PART) this.showRates();
      },
      part === FIRST ? AFTER_PICTURE_MS : 0,
    );
  }

  destroy(): void {
    clearTimeout(this.next);
  }

  private showGroup(name: string, id: number, nodes: readonly TopologyNode[]): void {
    const { topology } = this.ctx.store.shown;
    const label = labeller((topology?.nodes ?? []).map((node) => node.name));
    const group = topology?.group(id);
    const messages = this.view.options.measure === "msgs";
    const row = (node: TopologyNode) => {
      const rate = h("span", { class: "panel-rate" });
      this.rates.set(`n${node.id}`, rate);
      return h(
        "li",
        {},
        h(
          "a",
          {
            class: "panel-row",
            href: this.ctx.href("node", node.name),
            "data-node": node.name,
            onpointerenter: (event: Event) => this.hover(event, `n:${node.name}`),
            onpointerleave: () => this.point(null),
          },
          h("span", { class: `status status-${node.status}`, title: node.status }),
          h("span", { class: "panel-name", title: node.name }, label(node.name)),
          node.status === "up" ? null : h("span", { class: "panel-down" }, node.status),
          node.groups.length > 1
            ? h(
                "span",
                {
                  class: "panel-swatches",
                  title: topology
                    ?.groupsOf(node)
                    .map((one) => one.name)
                    .join(", "),
                },
                ...node.groups.map((one) => swatch(one, this.ctx.palette.dark)),
              )
            : null,
          rate,
        ),
      );
    };
    const coordinator = group?.coordinator == null ? undefined : topology?.node(group.coordinator);
    const names = group && namesOf(topology, this.ctx.store.shown.frame, group);
    this.content.replaceChildren(
      h(
        "header",
        { class: "panel-head" },
        h("a", { class: "panel-back", href: this.ctx.href("groups") }, icon("up"), "All groups"),
        h("h2", { class: "with-swatches" }, swatch(id, this.ctx.palette.dark), name),
        h(
          "p",
          { class: "muted" },
          [
            `${count(nodes.length)} ${nodes.length === 1 ? "node" : "nodes"}`,
            group === undefined ? null : `${count(names)} ${names === 1 ? "name" : "names"}`,
            coordinator === undefined ? null : `coordinator ${label(coordinator.name)}`,
          ]
            .filter((part) => part !== null)
            .join(", "),
        ),
        id === FREE
          ? null
          : h(
              "div",
              { class: "row" },
              h(
                "a",
                { class: "button", href: this.ctx.href("names", null, { group: name }) },
                "Names",
              ),
              h(
                "a",
                { class: "button", href: this.ctx.href("events", null, { group: name }) },
                "Events",
              ),
              this.ctx.store.hello?.profiling === true
                ? h(
                    "a",
                    {
                      class: "button",
                      href: this.ctx.href("profiles", null, { on: `group:${name}` }),
                    },
                    "Profile …",
                  )
                : null,
            ),
      ),
      h(
        "div",
        { class: "panel-columns", "aria-hidden": "true" },
        h("span", {}, "node"),
        h("span", { class: "panel-rate" }, messages ? "msg/s sent" : "sent"),
      ),
      h("ul", { class: "panel-list" }, ...nodes.map(row)),
    );
  }

  private free(): number[] {
    const nodes = this.ctx.store.shown.topology?.nodes ?? [];
    return nodes.filter((node) => node.groups.length === 0).map((node) => node.id);
  }

  /** A finger does not hover: it goes where it touches. */
  private hover(event: Event, key: string): void {
    if ((event as PointerEvent).pointerType !== "touch") this.point(key);
  }

  private showRates(): void {
    const { topology, frame } = this.ctx.store.shown;
    const messages = this.view.options.measure === "msgs";
    const format = messages ? number : byteRate;
    // Whoever is attached and hidden, such as another monitor, is no free node.
    const sums = { direct: 0, free: 0, hidden: 0, all: 0 };
    let known = false;
    for (const { from, to, msgs, bytes } of this.view.flows?.all() ?? []) {
      known = true;
      const rate = messages ? msgs : bytes;
      sums.all += rate;
      if (from === HIDDEN || to === HIDDEN) sums.hidden += rate;
      else if (from === to) continue;
      else if (from === FREE || to === FREE) sums.free += rate;
      else sums.direct += rate;
    }
    const parts = [
      `${format(sums.direct)} past the gateways`,
      sums.free > 0 ? `${format(sums.free)} with free nodes` : null,
      sums.hidden > 0 ? `${format(sums.hidden)} with hidden nodes` : null,
    ]
      .filter((part) => part !== null)
      .join(", ");
    const unit = messages ? messageRate : byteRate;
    text(this.sum, known ? `${parts}, ${unit(sums.all)} in all` : "");
    for (const [key, element] of this.rates) {
      const id = Number(key.slice(1));
      if (key.startsWith("g")) {
        const flow = this.view.flows?.get(id, id);
        const nodes = topology?.group(id)?.nodes ?? this.free();
        const { msgs, bytes } = flowOf(flow, frame, nodes);
        text(element, format(messages ? msgs : bytes));
      } else {
        text(element, format(frame?.value(id, messages ? "out_msgs_s" : "out_bytes_s") ?? NaN));
      }
    }
  }
}
