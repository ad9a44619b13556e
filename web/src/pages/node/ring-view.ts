// SPDX-License-Identifier: Apache-2.0
// The schedulers of a node on a ring: cores and sockets as arcs, utilisation as fill, run queues as bars outside,
// migrations of processes as arcs inside that fade.
import type { SchedulerDetail } from "../../model/protocol";
import {
  distance,
  type Distance,
  migrationPath,
  polar,
  QUEUE_STEPS,
  queueLength,
  queueStep,
  ringLayout,
  type RingLayout,
  sector,
  type Slot,
} from "./scheduler-ring";
import { children as fill, h, s as svg, set, text as setText } from "../../lib/dom";
import { number, share } from "../../lib/format";

const INNER = 96;
const OUTER = 122;
const CORE = 90;
const BAR = 127;
const BAR_LENGTH = 62;
const SOCKET_OUT = BAR + BAR_LENGTH;
const MARKS = [1, 10, 100];
/** Arcs drawn of one sample, and at a time; more would hide one another. */
const MOST_OF_SAMPLE = 24;
const MOST_ARCS = 72;
/** As long as the style sheet's animation. */
const FADE_MS = 1500;

const DISTANCES: readonly (readonly [Distance, string])[] = [
  ["core", "same core"],
  ["socket", "same socket"],
  ["other", "other socket"],
  ["unknown", "cores not known"],
];

interface Drawn {
  fill: SVGPathElement;
  bar: SVGPathElement;
  title: SVGTitleElement;
  group: SVGGElement;
}

export class RingView {
  readonly root: HTMLElement;
  private readonly picture: SVGSVGElement;
  private readonly still = svg("g");
  private readonly moving = svg("g", { class: "ring-migrations" });
  private readonly middle = svg("text", { class: "ring-middle", y: -2 });
  private readonly below = svg("text", { class: "ring-below", y: 16 });
  private readonly legend = h("div", { class: "ring-legend" });
  private readonly ways = h("div", { class: "ring-ways" });
  private readonly drawn = new Map<number, Drawn>();
  private layout: RingLayout = ringLayout([]);
  private shape = "";

  constructor() {
    this.picture = svg(
      "svg",
      { viewBox: "-232 -200 464 400", class: "ring", role: "img", "aria-label": "Schedulers" },
      this.still,
      this.moving,
      this.middle,
      this.below,
    );
    fill(
      this.legend,
      h("span", { class: "legend-title" }, "Run queue"),
      ...QUEUE_STEPS.map((text, i) =>
        h("span", { class: "legend-key" }, h("i", { class: `swatch q${i}` }), text),
      ),
      h("span", { class: "legend-key" }, h("i", { class: "swatch util" }), "utilisation"),
    );
    fill(
      this.ways,
      h("span", { class: "legend-title" }, "Migrations"),
      ...DISTANCES.slice(0, 3).map(([way, text]) =>
        h(
          "span",
          { class: "legend-key" },
          svg(
            "svg",
            { width: 24, height: 8, "aria-hidden": "true" },
            svg("line", { x1: 1, x2: 23, y1: 4, y2: 4, class: `way way-${way}` }),
          ),
          text,
        ),
      ),
    );
    this.ways.hidden = true;
    this.root = h(
      "div",
      { class: "ring-view" },
      this.picture,
      h("div", { class: "ring-legends" }, this.legend, this.ways),
    );
  }

  /** Schedulers of all types; the ring shows the normal ones. */
  draw(schedulers: readonly SchedulerDetail[], tracing: boolean): void {
    const normal = schedulers.filter((one) => one.type === "normal");
    const shape = normal.map((one) => `${one.id}:${one.socket}:${one.core}`).join();
    if (shape !== this.shape) {
      this.shape = shape;
      this.rebuild(normal);
    }
    let queued = 0;
    let utilised = 0;
    let measured = 0;
    for (const one of normal) {
      const queue = one.queue ?? 0;
      queued += queue;
      if (typeof one.util === "number") {
        utilised += one.util;
        measured += 1;
      }
      this.update(one, queue);
    }
    setText(this.middle, measured > 0 ? share(utilised / measured) : "–");
    setText(
      this.below,
      measured > 0 ? `utilisation · run queue ${number(queued)}` : `run queue ${number(queued)}`,
    );
    set(
      this.picture,
      "aria-label",
      `${normal.length} schedulers, utilisation ${measured > 0 ? share(utilised / measured) : "unknown"}, run queue ${queued}`,
    );
    this.ways.hidden = !tracing;
  }

  /** Migrations of one sample: `[from, to, count]` by number of scheduler. They fade in 1.5 s. */
  migrate(migrations: readonly (readonly [number, number, number])[]): void {
    const most = [...migrations].sort((a, b) => b[2] - a[2]).slice(0, MOST_OF_SAMPLE);
    for (const [from, to, count] of most) {
      const d = migrationPath(this.layout, from, to, CORE - 6);
      if (d === null) continue;
      const path = svg("path", {
        d,
        class: `way way-${distance(this.layout, from, to)} fading`,
        "stroke-width": (1 + Math.min(2.5, 0.6 * Math.log2(Math.max(1, count)))).toFixed(1),
      });
      // By the clock: where less motion is wished for there is no animation that would end.
      setTimeout(() => path.remove(), FADE_MS);
      this.moving.append(path);
    }
    while (this.moving.childElementCount > MOST_ARCS) this.moving.firstChild?.remove();
  }

  private update(one: SchedulerDetail, queue: number): void {
    const drawn = this.drawn.get(one.id);
    const slot = this.layout.byId.get(one.id);
    if (!drawn || !slot) return;
    const util = typeof one.util === "number" ? Math.min(1, Math.max(0, one.util)) : 0;
    set(drawn.fill, "d", util > 0.005 ? sector(slot, INNER, INNER + (OUTER - INNER) * util) : null);
    set(
      drawn.bar,
      "d",
      queue > 0 ? sector(slot, BAR, BAR + BAR_LENGTH * queueLength(queue)) : null,
    );
    set(drawn.bar, "class", `ring-bar q${queueStep(queue)}`);
    set(drawn.group, "class", typeof one.util === "number" ? "ring-slot" : "ring-slot unknown");
    const place =
      one.socket === null || one.socket === undefined
        ? ""
        : `, socket ${one.socket}, core ${one.core ?? "–"}`;
    setText(
      drawn.title,
      `Scheduler ${one.id}${place}: run queue ${number(queue)}, utilisation ${share(one.util)}`,
    );
  }

  private rebuild(normal: readonly SchedulerDetail[]): void {
    this.layout = ringLayout(
      normal.map((one) => ({ id: one.id, socket: one.socket ?? null, core: one.core ?? null })),
    );
    this.drawn.clear();
    this.moving.replaceChildren();
    const { sockets, cores, slots } = this.layout;
    const many = sockets.length > 1;
    fill(
      this.still,
      ...sockets.map((one, i) =>
        svg("path", {
          d: sector(one, CORE - 5, SOCKET_OUT),
          class: `ring-socket ${i % 2 ? "odd" : ""}`,
        }),
      ),
      ...MARKS.map((mark) =>
        svg("circle", {
          r: BAR + BAR_LENGTH * queueLength(mark),
          class: "ring-mark",
          fill: "none",
        }),
      ),
      ...cores.map((one) =>
        svg("path", { d: sector(one, CORE - 1.5, CORE + 1.5), class: "ring-core" }),
      ),
      ...slots.map((slot) => this.slot(slot, slots.length)),
      ...MARKS.map((mark) =>
        svg(
          "text",
          { x: 0, y: -(BAR + BAR_LENGTH * queueLength(mark)) + 3, class: "ring-mark-text" },
          mark,
        ),
      ),
      ...(many ? sockets.map((one) => socketLabel(one.a0, one.a1, one.socket)) : []),
    );
  }

  private slot(slot: Slot, total: number): SVGGElement {
    const filled = svg("path", { class: "ring-fill" });
    const bar = svg("path", { class: "ring-bar" });
    const title = svg("title");
    const [x, y] = polar((slot.a0 + slot.a1) / 2, (INNER + OUTER) / 2);
    const group = svg(
      "g",
      { class: "ring-slot" },
      title,
      svg("path", { d: sector(slot, INNER, OUTER), class: "ring-box" }),
      filled,
      bar,
      total <= 40 ? svg("text", { x, y: y + 3, class: "ring-id" }, slot.id) : null,
    );
    this.drawn.set(slot.id, { fill: filled, bar, title, group });
    return group;
  }
}

/** Outside, where nothing moves. */
function socketLabel(a0: number, a1: number, socket: number | null): SVGTextElement {
  const [x, y] = polar((a0 + a1) / 2, SOCKET_OUT + 22);
  return svg(
    "text",
    { x, y: y + 3, class: "ring-socket-text" },
    socket === null ? "no socket" : `socket ${socket}`,
  );
}
