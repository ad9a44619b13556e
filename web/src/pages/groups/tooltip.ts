// SPDX-License-Identifier: Apache-2.0
// The numbers of what is pointed at; pinned by a click, so that its link can be followed.
import type { Ctx } from "../../ui/ctx";
import { byteRate, bytes, count, messageRate, number, share, UNKNOWN } from "../../lib/format";
import { h } from "../../lib/dom";
import { FREE } from "../../model/flows";
import { probeOf } from "../../model/probe";
import { flowOf, namesOf } from "../../model/known";
import type { Entity } from "../../model/scene";
import { beside } from "./geometry";
import { swatch } from "../../ui/patterns";
import type { GroupView } from "./view";

type Fact = [string, string];

export class Tooltip {
  readonly element = h("div", {
    class: "tooltip map-tooltip",
    hidden: true,
    "data-testid": "tooltip",
  });
  private shownFor = "";

  constructor(
    private readonly ctx: Ctx,
    private readonly view: GroupView,
    /** What the toolbar and the list take of the map, px. */
    private readonly taken: () => { top: number; bottom: number },
  ) {}

  /** Shows what is hovered, else what is pinned or has the keyboard's focus, else nothing. */
  update(): void {
    const { view } = this;
    const scene = view.scene;
    const keyboard =
      document.activeElement === view.canvas && view.canvas.matches(":focus-visible")
        ? view.focused
        : null;
    const index = view.indexOf(
      view.hovered ?? (view.hoveredEdge >= 0 ? null : (view.pinned ?? keyboard)),
    );
    if (scene !== null && index >= 0) return this.showEntity(scene.entities[index], index);
    if (scene !== null && view.hoveredEdge >= 0 && view.hoveredEdge < view.edges.count)
      return this.showEdge(view.hoveredEdge);
    this.element.hidden = true;
    this.shownFor = "";
  }

  /** What a screen reader is told of an entity. */
  describe(entity: Entity): string {
    return [
      entity.label,
      ...this.factsOf(entity).map(([label, value]) => `${label} ${value}`),
    ].join(", ");
  }

  private showEntity(entity: Entity, index: number): void {
    const pinned = this.view.pinned === entity.key;
    const more =
      entity.kind === "node"
        ? h("a", { class: "button", href: this.ctx.href("node", entity.label) }, "Open node")
        : entity.groups[0] === FREE
          ? null
          : h("a", { class: "button", href: this.ctx.href("groups", entity.label) }, "Open group");
    this.show(
      `${entity.key}${pinned}`,
      entityTitle(this.ctx, entity),
      this.factsOf(entity),
      entity.node?.why ?? null,
      pinned ? more : null,
    );
    this.element.classList.toggle("pinned", pinned);
    const place = this.view.placeOf(index);
    this.place(place.x, place.y, place.r);
  }

  private showEdge(edge: number): void {
    const { view } = this;
    const scene = view.scene;
    if (scene === null) return;
    const from = scene.entities[view.edges.from[edge]];
    const to = scene.entities[view.edges.to[edge]];
    const facts: Fact[] = [
      ["messages", messageRate(view.edges.msgs[edge])],
      ["bytes", byteRate(view.edges.bytes[edge])],
    ];
    const back = findBack(view, edge);
    if (back >= 0) facts.push(["the other way", messageRate(view.edges.msgs[back])]);
    const title = h("h3", {}, `${view.labelOf(from)} → ${view.labelOf(to)}`);
    this.show(
      `e${from.key}>${to.key}`,
      title,
      facts,
      view.edges.direct[edge] === 1
        ? "These nodes share no group: the traffic goes past the gateways."
        : null,
      null,
    );
    this.element.classList.remove("pinned");
    const { x, y } = view.middleOf(edge);
    this.place(x, y, 12);
  }

  private show(
    key: string,
    title: HTMLElement,
    facts: Fact[],
    note: string | null,
    more: HTMLElement | null,
  ): void {
    // The same numbers again would only disturb a text selection or a focused link.
    const now = key + facts.join();
    if (now === this.shownFor && !this.element.hidden) return;
    this.shownFor = now;
    this.element.hidden = false;
    const list = h(
      "dl",
      { class: "facts" },
      ...facts.flatMap(([label, value]) => [h("dt", {}, label), h("dd", {}, value)]),
    );
    this.element.replaceChildren(title, list);
    if (note !== null) this.element.append(h("p", { class: "tooltip-note" }, note));
    if (more !== null) this.element.append(h("div", { class: "row tooltip-more" }, more));
  }

  private place(x: number, y: number, r: number): void {
    const { element } = this;
    const { width, height } = (element.parentElement as HTMLElement).getBoundingClientRect();
    const size = { width: element.offsetWidth, height: element.offsetHeight };
    const { left, top } = beside({ x, y, r }, size, { width, height, ...this.taken() });
    element.style.transform = `translate(${Math.round(left)}px, ${Math.round(top)}px)`;
  }

  private factsOf(entity: Entity): Fact[] {
    const { topology, frame } = this.ctx.store.shown;
    const facts: Fact[] = [];
    if (entity.kind === "node") {
      const id = entity.members[0];
      const value = (metric: string) => frame?.value(id, metric) ?? NaN;
      if (entity.node?.status !== "up") facts.push(["status", entity.node?.status ?? ""]);
      const source = entity.node?.source;
      if (entity.node && source === "stock")
        facts.push([
          "watched",
          probeOf(entity.node) === "elsewhere"
            ? "its probe tells other monitors"
            : entity.node.library
              ? "runs the library, no probe"
              : "as stock OTP tells",
        ]);
      else if (source === "none") facts.push(["watched", "not yet"]);
      facts.push([
        "groups",
        topology && entity.node
          ? topology
              .groupsOf(entity.node)
              .map((group) => group.name)
              .join(", ") || "none"
          : "",
      ]);
      const add = (label: string, text: string, known: number) =>
        Number.isFinite(known) && facts.push([label, text]);
      add("utilisation", share(value("util")), value("util"));
      add("run queue", count(value("run_queue")), value("run_queue"));
      add("processes", count(value("procs")), value("procs"));
      add("memory", bytes(value("mem")), value("mem"));
      add(
        "sent",
        `${number(value("out_msgs_s"))} msg/s, ${byteRate(value("out_bytes_s"))}`,
        value("out_msgs_s"),
      );
      add(
        "received",
        `${number(value("in_msgs_s"))} msg/s, ${byteRate(value("in_bytes_s"))}`,
        value("in_msgs_s"),
      );
      if ((entity.node?.groups.length ?? 0) > 1)
        add("forwarded", messageRate(value("forwarded_s")), value("forwarded_s"));
      return facts;
    }
    const id = entity.groups[0];
    const group = topology?.group(id);
    const disc = this.view.scene?.discs.find((one) => one.id === id);
    const members = group?.nodes ?? disc?.own.map((node) => node.id) ?? [];
    const inside = flowOf(this.view.flows?.get(id, id), frame, members);
    facts.push(
      ["own nodes", count(disc?.own.length ?? 0)],
      ["gateways", count(disc?.gateways.length ?? 0)],
    );
    if (disc !== undefined && disc.down > 0) facts.push(["not up", count(disc.down)]);
    if (group !== undefined) facts.push(["names", count(namesOf(topology, frame, group))]);
    facts.push([
      "inside",
      inside.msgs === null ? UNKNOWN : `${messageRate(inside.msgs)}, ${byteRate(inside.bytes)}`,
    ]);
    return facts;
  }
}

function entityTitle(ctx: Ctx, entity: Entity): HTMLElement {
  return h(
    "h3",
    { class: "with-swatches" },
    ...entity.groups.map((group) => swatch(group, ctx.palette.dark)),
    entity.label,
  );
}

function findBack(view: GroupView, edge: number): number {
  for (let e = 0; e < view.edges.count; e++) {
    if (
      view.edges.from[e] === view.edges.to[edge] &&
      view.edges.to[e] === view.edges.from[edge] &&
      view.edges.msgs[e] > 0
    )
      return e;
  }
  return -1;
}
