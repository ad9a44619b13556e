// SPDX-License-Identifier: Apache-2.0
// The time bar's strip: all traffic over the history as a quiet area, events as marks on it.
import { clock, number } from "../lib/format";
import { h } from "../lib/dom";
import type { ClusterEvent, Level, Series } from "../model/protocol";
import type { Ctx } from "../ui/ctx";

const POINTS = 240;
/** How old the area may be before it is asked for again: a share of the range, within bounds (ms). */
const REFRESH = { share: 0.05, least: 2_000, most: 10_000 };
/** The width of the range input's thumb, whose middle stays half of it away from both ends. */
const THUMB_PX = 14;
const RANK: Record<Level, number> = { info: 0, notice: 1, warning: 2, error: 3 };

export class Track {
  readonly element: HTMLElement;
  private readonly canvas = h("canvas", { class: "track-canvas", "aria-hidden": "true" });
  private readonly bubble = h("div", { class: "track-bubble", hidden: true });
  private series: Series | null = null;
  private asked = 0;
  private askedRange = 0;
  private drawn = "";
  private width = 0;
  private height = 0;

  constructor(
    private readonly ctx: Ctx,
    input: HTMLInputElement,
  ) {
    this.element = h("div", { class: "track" }, this.canvas, input, this.bubble);
    input.addEventListener("pointermove", (event) => this.hover(event.offsetX));
    input.addEventListener("pointerleave", () => (this.bubble.hidden = true));
    new ResizeObserver(() => this.resized()).observe(this.element);
  }

  update(): void {
    this.refresh();
    this.draw();
  }

  /** The source has changed: what is drawn is of another history. */
  reset(): void {
    this.series = null;
    this.asked = 0;
  }

  private refresh(): void {
    const { store } = this.ctx;
    const { range } = store;
    const now = performance.now();
    const another = range !== null && this.askedRange !== range[0];
    if (range === null || range[1] <= range[0] || store.connection !== "connected") return;
    const pause = Math.min(
      REFRESH.most,
      Math.max(REFRESH.least, REFRESH.share * (range[1] - range[0])),
    );
    if (this.asked !== 0 && !another && now - this.asked < pause) return;
    if (this.asked !== 0 && now - this.asked < 1000) return;
    this.asked = now;
    this.askedRange = range[0];
    store
      .request("series", {
        of: { kind: "total" },
        from: Math.round(range[0]),
        to: Math.round(range[1]),
        points: POINTS,
      })
      .then(
        (series) => {
          this.series = series;
          this.drawn = "";
          this.draw();
        },
        () => undefined, // the strip is then without its area
      );
  }

  private resized(): void {
    const { width, height } = this.element.getBoundingClientRect();
    const ratio = devicePixelRatio || 1;
    this.width = width;
    this.height = height;
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(height * ratio);
    this.drawn = "";
    this.draw();
  }

  private x(t: number): number {
    const [from, to] = this.ctx.store.range as [number, number];
    return THUMB_PX / 2 + ((t - from) / Math.max(1, to - from)) * (this.width - THUMB_PX);
  }

  private t(x: number): number {
    const [from, to] = this.ctx.store.range as [number, number];
    const share = (x - THUMB_PX / 2) / Math.max(1, this.width - THUMB_PX);
    return from + Math.min(1, Math.max(0, share)) * (to - from);
  }

  private draw(): void {
    const { store, palette } = this.ctx;
    if (store.range === null || this.width === 0) return;
    // The newest end moves with each frame: draws only where that is a pixel or more.
    const span = Math.max(1, store.range[1] - store.range[0]);
    const lastEvent = store.events[store.events.length - 1]?.id ?? 0;
    const key = [
      Math.round((store.range[1] / span) * this.width),
      Math.round((store.range[0] / span) * this.width),
      lastEvent,
      store.events.length,
      palette.dark,
      this.series?.t.length,
    ].join();
    if (key === this.drawn) return;
    this.drawn = key;
    const c = this.canvas.getContext("2d") as CanvasRenderingContext2D;
    const ratio = this.canvas.width / this.width;
    c.setTransform(ratio, 0, 0, ratio, 0, 0);
    c.clearRect(0, 0, this.width, this.height);
    this.drawArea(c);
    this.drawEvents(c);
  }

  private drawArea(c: CanvasRenderingContext2D): void {
    const { palette } = this.ctx;
    const base = this.height - 9;
    c.fillStyle = palette.line;
    c.fillRect(THUMB_PX / 2, base, this.width - THUMB_PX, 1.5);
    const values = this.series?.columns["msgs_s"];
    if (this.series === null || values === undefined) return;
    const most = Math.max(1, ...values.map((value) => value ?? 0));
    const { t } = this.series;
    c.fillStyle = palette.accent;
    c.globalAlpha = 0.28;
    c.beginPath();
    let open = false;
    let last = 0;
    values.forEach((value, i) => {
      if (value === null) {
        if (open) c.lineTo(last, base);
        open = false;
        return;
      }
      const x = this.x(t[i]);
      if (!open) c.moveTo(x, base);
      open = true;
      c.lineTo(x, base - (value / most) * (base - 4));
      last = x;
    });
    if (open) c.lineTo(last, base);
    c.fill();
    c.globalAlpha = 1;
  }

  private drawEvents(c: CanvasRenderingContext2D): void {
    const { palette, store } = this.ctx;
    const colors: Record<Level, string> = {
      info: palette.faint,
      notice: palette.accent,
      warning: palette.warning,
      error: palette.critical,
    };
    // One mark a pixel, of the most severe event.
    const marks = new Map<number, Level>();
    for (const event of store.events) {
      const x = Math.round(this.x(event.t));
      if (x < 0 || x > this.width) continue;
      const known = marks.get(x);
      if (known === undefined || RANK[event.level] > RANK[known]) marks.set(x, event.level);
    }
    for (const [x, level] of [...marks].sort((a, b) => RANK[a[1]] - RANK[b[1]])) {
      const tall = 4 + RANK[level] * 2.5;
      c.fillStyle = colors[level] ?? palette.faint;
      c.fillRect(x - 1, this.height - 7 - tall / 2 - 2, 2, tall);
    }
  }

  private hover(x: number): void {
    const { store } = this.ctx;
    if (store.range === null || this.width === 0) return;
    const event = this.nearest(x);
    const t = event?.t ?? this.t(x);
    const value = this.valueAt(t);
    this.bubble.replaceChildren(
      h("strong", {}, clock(t)),
      value === null ? "" : `  ${number(value)} msg/s`,
      ...(event === null
        ? []
        : [
            h(
              "div",
              { class: `track-event level-${event.level}` },
              [event.node ?? event.group, event.text].filter(Boolean).join(": "),
            ),
          ]),
    );
    this.bubble.hidden = false;
    const half = this.bubble.offsetWidth / 2;
    this.bubble.style.left = `${Math.min(this.width - half, Math.max(half, this.x(t)))}px`;
  }

  private nearest(x: number): ClusterEvent | null {
    let best: ClusterEvent | null = null;
    let least = 5;
    for (const event of this.ctx.store.events) {
      const distance = Math.abs(this.x(event.t) - x) - RANK[event.level] * 0.01;
      if (distance < least) [best, least] = [event, distance];
    }
    return best;
  }

  private valueAt(t: number): number | null {
    const { series } = this;
    if (series === null) return null;
    let i = series.t.findIndex((at) => at > t);
    if (i < 0) i = series.t.length;
    return series.columns["msgs_s"]?.[Math.max(0, i - 1)] ?? null;
  }
}
