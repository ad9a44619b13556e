// SPDX-License-Identifier: Apache-2.0
// The graph of communication as a picture: an end is a button, the arrow keys go to the next one in a direction.
import { children as fill, h, s, set } from "../../../lib/dom";
import { bytes, count } from "../../../lib/format";
import { arrow, type Curve, curve, nextTo } from "../../../model/curve";
import type { Asked, Communication, MessageEdge, End } from "../sums-answers";
import {
  at,
  heightOf,
  type Label,
  labels,
  layout,
  loop,
  places,
  scaleOf,
  shortened,
  type Size,
  spoken,
  type Spot,
  widthOf,
} from "./graph-model";

const DIRECTIONS: Record<string, readonly [number, number]> = {
  ArrowLeft: [-1, 0],
  ArrowRight: [1, 0],
  ArrowUp: [0, -1],
  ArrowDown: [0, 1],
};

export class MessageGraph {
  readonly root: HTMLElement;
  private readonly lines = s("g", {});
  private readonly ends = s("g", {});
  private readonly svg = s(
    "svg",
    { class: "graph-picture", width: "100%", role: "group", "aria-label": "Who sends to whom" },
    this.lines,
    this.ends,
  );
  private readonly resize: ResizeObserver;
  private width = 0;
  private answer: Communication | null = null;
  private asked: Asked | null = null;
  private spots: Spot[] = [];
  private buttons: SVGGElement[] = [];
  private active = 0;

  /** `chosen`: the neighbours of this one are to be seen, or all again. */
  constructor(private readonly chosen: (key: string | null) => void) {
    this.root = h("div", { class: "graph", "data-testid": "profile-graph" }, this.svg);
    this.svg.addEventListener("keydown", (event) => this.pressed(event));
    this.resize = new ResizeObserver(() => {
      const width = Math.floor(this.root.clientWidth);
      if (width > 0 && width !== this.width) {
        this.width = width;
        this.paint();
      }
    });
    this.resize.observe(this.root);
  }

  draw(answer: Communication, asked: Asked): void {
    this.answer = answer;
    this.asked = asked;
    this.root.hidden = answer.edges.length === 0;
    this.paint();
  }

  destroy(): void {
    this.resize.disconnect();
  }

  private paint(): void {
    const { answer, asked, width } = this;
    if (answer === null || asked === null || width === 0) return;
    const size: Size = { width, height: heightOf(answer.ends.length) };
    set(this.svg, "height", size.height);
    set(this.svg, "viewBox", `0 0 ${size.width} ${size.height}`);
    const focused = this.buttons.indexOf(document.activeElement as unknown as SVGGElement);
    const key = focused < 0 ? null : this.spots[focused]?.key;
    this.spots = layout(answer, asked.sort, size);
    const ends = new Map(answer.ends.map((end) => [end.key, end]));
    const names = new Map(
      labels(this.spots, (one) => ends.get(one)?.name ?? "", size).map((label) => [
        label.key,
        label,
      ]),
    );
    this.active = Math.max(
      0,
      this.spots.findIndex((spot) => spot.key === (key ?? asked.around)),
    );
    this.buttons = this.spots.map((spot, i) =>
      this.button(spot, ends.get(spot.key) as End, names.get(spot.key), i === this.active),
    );
    fill(this.lines, ...this.edges(answer, ends, asked));
    fill(this.ends, ...this.buttons);
    if (key !== null && key !== undefined) this.buttons[this.active]?.focus();
  }

  private edges(
    { edges }: Communication,
    ends: ReadonlyMap<string, End>,
    asked: Asked,
  ): SVGElement[] {
    const scale = scaleOf(edges, asked.sort);
    const spots = new Map(this.spots.map((spot) => [spot.key, spot]));
    return edges.flatMap((edge) => {
      const [from, to] = [spots.get(edge.from), spots.get(edge.to)];
      if (from === undefined || to === undefined) return [];
      const thick = widthOf(edge, asked.sort, scale);
      return s(
        "g",
        { class: "graph-edge", "data-from": edge.from, "data-to": edge.to },
        s("title", {}, sent(edge, ends)),
        ...(from === to ? [line(loop(from), thick)] : bent(from, to, thick)),
      );
    });
  }

  private button(spot: Spot, end: End, label: Label | undefined, isActive: boolean): SVGGElement {
    const by = this.asked?.by ?? "process";
    const isChosen = end.key === this.asked?.around;
    // Where there is no room for a name it is over the others while one points at its end.
    const name = label ?? places(spot, shortened(end.name))[0].label;
    const group = s(
      "g",
      {
        class: `graph-end of-${end.node % 8}${label === undefined ? " crowded" : ""}`,
        role: "button",
        tabindex: isActive ? 0 : -1,
        "aria-label": spoken(end, by),
        "aria-pressed": String(isChosen),
      },
      s("title", {}, spoken(end, by)),
      s("circle", { cx: spot.x, cy: spot.y, r: spot.r }),
      s("text", { x: name.x, y: name.y, "text-anchor": name.anchor }, name.text),
    );
    group.addEventListener("click", () => this.chosen(isChosen ? null : end.key));
    for (const [event, on] of [
      ["pointerenter", true],
      ["pointerleave", false],
      ["focus", true],
      ["blur", false],
    ] as const)
      group.addEventListener(event, () => this.point(on ? end.key : null));
    return group;
  }

  /** Its edges stand out. */
  private point(key: string | null): void {
    this.svg.classList.toggle("pointed", key !== null);
    for (const edge of this.lines.children) {
      const isOf =
        key !== null &&
        (edge.getAttribute("data-from") === key || edge.getAttribute("data-to") === key);
      edge.classList.toggle("on", isOf);
    }
  }

  private pressed(event: KeyboardEvent): void {
    const from = this.buttons.indexOf(document.activeElement as unknown as SVGGElement);
    if (from < 0) return;
    const direction = DIRECTIONS[event.key];
    if (direction !== undefined) {
      const [dx, dy] = direction;
      const { spots } = this;
      const to = nextTo(
        spots.length,
        (i) => (spots[i] as Spot).x,
        (i) => (spots[i] as Spot).y,
        from,
        dx,
        dy,
      );
      if (to >= 0) this.focus(to);
    } else if (event.key === "Enter" || event.key === " ") {
      const { key } = this.spots[from] as Spot;
      this.chosen(key === this.asked?.around ? null : key);
    } else if (event.key === "Escape" && this.asked?.around !== "") this.chosen(null);
    else return;
    event.preventDefault();
    // The page has keys of the same name.
    event.stopPropagation();
  }

  private focus(to: number): void {
    set(this.buttons[this.active] as Element, "tabindex", -1);
    this.active = to;
    set(this.buttons[to] as Element, "tabindex", 0);
    this.buttons[to]?.focus();
  }
}

const sent = (
  { from, to, count: n, bytes: size }: MessageEdge,
  ends: ReadonlyMap<string, End>,
): string =>
  `${ends.get(from)?.name} to ${ends.get(to)?.name}: ${count(n)} ${n === 1 ? "message" : "messages"}, ${bytes(size)}`;

const line = (d: string, thick: number): SVGElement =>
  s("path", { d, class: "graph-line", "stroke-width": thick.toFixed(1) });

function bent(from: Spot, to: Spot, thick: number): SVGElement[] {
  const shape: Curve = { x0: 0, y0: 0, cx: 0, cy: 0, x1: 0, y1: 0 };
  const head = 5 + 1.2 * thick;
  curve(from.x, from.y, from.r + 1, to.x, to.y, to.r + 2, 1, shape);
  const tip: string[] = [];
  arrow(
    {
      moveTo: (x, y) => tip.push(`M${at(x, y)}`),
      lineTo: (x, y) => tip.push(`L${at(x, y)}`),
      closePath: () => tip.push("Z"),
    },
    shape,
    head,
  );
  // The line ends within the arrow's head.
  curve(from.x, from.y, from.r + 1, to.x, to.y, to.r + 1 + head, 1, shape);
  const { x0, y0, cx, cy, x1, y1 } = shape;
  return [
    line(`M${at(x0, y0)}Q${at(cx, cy)} ${at(x1, y1)}`, thick),
    s("path", { d: tip.join(""), class: "graph-head" }),
  ];
}
