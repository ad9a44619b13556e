// SPDX-License-Identifier: Apache-2.0
// A chart of values over time in SVG: axes with units, a crosshair by pointer and arrow keys, gaps for what is
// not known, series that are told apart by colour and by line style.

import {
  areaPath,
  largest,
  linePath,
  lastKnown,
  nearest,
  stack,
  xOf,
  yOf,
  type Box,
  type Domain,
  type Series,
} from "./chart-model";
import { timeLabel, timeTicks, valueTicks } from "./ticks";
import { children as fill, h, s, set, text as setText } from "./dom";
import { clock, dateTime, type Format } from "./format";

export interface ChartOptions {
  /** What is shown, for those who hear it. */
  title: string;
  format: Format;
  /** 1024 for bytes. */
  base?: 1000 | 1024;
  /** The least that the axis reaches to; with `fixed`, exactly that. */
  max?: number;
  fixed?: boolean;
  stacked?: boolean;
  height?: number;
  /** Called with a time when a point is chosen by click or Enter. */
  onPick?: (t: number) => void;
}

interface ChartData {
  t: readonly number[];
  series: readonly Series[];
  /** Shown between these times; of the data where left out. */
  from?: number;
  to?: number;
  /** A line at this time, where the page is paused. */
  mark?: number | null;
}

export interface Chart {
  root: HTMLElement;
  draw(data: ChartData): void;
  destroy(): void;
}

const TOP = 8;
const BOTTOM = 20;

export function chart(options: ChartOptions): Chart {
  const height = options.height ?? 150;
  const grid = s("g", { class: "chart-grid" });
  // A nested picture, which clips lines that reach beyond the time shown.
  const lines = s("svg", { class: "chart-lines", overflow: "hidden" });
  const mark = s("line", { class: "chart-mark", visibility: "hidden" });
  const cross = s("line", { class: "chart-cross", visibility: "hidden" });
  const dots = s("g", { class: "chart-dots" });
  const svg = s(
    "svg",
    { height, width: "100%", "aria-hidden": "true" },
    grid,
    lines,
    mark,
    cross,
    dots,
  );
  const legend = h("div", { class: "chart-legend" });
  const empty = h(
    "p",
    { class: "chart-empty", hidden: true },
    "Nothing was measured in this time.",
  );
  const plot = h(
    "div",
    {
      class: "chart-plot",
      tabindex: 0,
      role: "group",
      "aria-roledescription": "chart",
      "aria-label": options.title,
    },
    svg,
    empty,
  );
  const spoken = h("span", { class: "visually-hidden", "aria-live": "polite" });
  const root = h("div", { class: "chart" }, plot, legend, spoken);

  let data: ChartData = { t: [], series: [] };
  let width = 0;
  let box: Box = { x: 0, y: TOP, width: 1, height: height - TOP - BOTTOM };
  let domain: Domain = { from: 0, to: 1, max: 1 };
  let chosen = -1;
  let chosenT: number | null = null;
  let byKey = false;
  // While new data comes, the pointer keeps its place, and the keys keep their time.
  let pointerX: number | null = null;
  let keys = "";
  let values: HTMLElement[] = [];

  const resized = new ResizeObserver(() => {
    const now = Math.floor(plot.clientWidth);
    if (now !== width && now > 0) {
      width = now;
      paint();
    }
  });
  resized.observe(plot);

  function paint(): void {
    if (width === 0) width = Math.floor(plot.clientWidth);
    if (width === 0) return;
    const { t, series } = data;
    const top =
      options.fixed && options.max
        ? options.max
        : Math.max(options.max ?? 0, largest(series, options.stacked));
    const ticks = valueTicks(top, 3, options.base);
    domain = {
      from: data.from ?? t[0] ?? 0,
      to: data.to ?? t[t.length - 1] ?? 1,
      max: ticks[ticks.length - 1] ?? 1,
    };
    const labels = ticks.map((tick) => options.format(tick));
    const left = Math.max(...labels.map((one) => one.length)) * 6.3 + 10;
    box = { x: left, y: TOP, width: Math.max(1, width - left - 10), height: height - TOP - BOTTOM };
    for (const [name, size] of [
      ["x", box.x],
      ["width", box.width],
      ["height", height],
    ] as const)
      set(lines, name, size);
    set(lines, "viewBox", `${box.x} 0 ${box.width} ${height}`);
    paintGrid(ticks, labels);
    paintLines();
    const known = series.some((one) => one.values.some((value) => value !== null));
    empty.hidden = known;
    set(lines, "visibility", known ? null : "hidden");
    const at = data.mark;
    const inside = typeof at === "number" && at >= domain.from && at <= domain.to;
    set(mark, "visibility", inside ? null : "hidden");
    if (inside) place(mark, xOf(at, domain, box));
    if (pointerX !== null) choose(nearest(t, timeAtX(pointerX)), false);
    else choose(byKey && chosenT !== null ? nearest(t, chosenT) : -1, false);
  }

  function place(line: SVGLineElement, x: number): void {
    set(line, "x1", x);
    set(line, "x2", x);
    set(line, "y1", box.y);
    set(line, "y2", box.y + box.height);
  }

  function paintGrid(ticks: readonly number[], labels: readonly string[]): void {
    const parts: SVGElement[] = [];
    ticks.forEach((tick, i) => {
      const y = Math.round(yOf(tick, domain, box)) + 0.5;
      parts.push(
        s("line", {
          x1: box.x,
          x2: box.x + box.width,
          y1: y,
          y2: y,
          class: i === 0 ? "axis" : null,
        }),
      );
      parts.push(s("text", { x: box.x - 6, y: y + 3.5, "text-anchor": "end" }, labels[i] ?? ""));
    });
    const times = timeTicks(domain.from, domain.to, Math.max(2, Math.floor(box.width / 72)));
    for (const t of times.at) {
      const x = xOf(t, domain, box);
      if (x > box.x + box.width - 16) continue;
      parts.push(
        s("line", {
          x1: x,
          x2: x,
          y1: box.y + box.height,
          y2: box.y + box.height + 4,
          class: "axis",
        }),
      );
      parts.push(
        s("text", { x, y: height - 4, "text-anchor": "middle" }, timeLabel(t, times.stepMs)),
      );
    }
    fill(grid, ...parts);
  }

  function paintLines(): void {
    const { t, series } = data;
    const names = series.map((one) => `${one.key}:${one.label}`).join("|");
    if (names !== keys) {
      keys = names;
      values = series.map(() => h("span", { class: "num" }));
      fill(
        legend,
        ...series.map((one, i) =>
          h(
            "span",
            { class: "chart-key" },
            s(
              "svg",
              { width: 22, height: 8, "aria-hidden": "true" },
              s("line", { x1: 1, x2: 21, y1: 4, y2: 4, class: `line s${i % 8}` }),
            ),
            one.label,
            values[i],
          ),
        ),
      );
    }
    const tops = options.stacked ? stack(series) : series.map((one) => one.values);
    const paths: SVGElement[] = [];
    tops.forEach((top, i) => {
      if (options.stacked || series.length === 1) {
        const below = options.stacked && i > 0 ? (tops[i - 1] ?? null) : null;
        paths.push(s("path", { d: areaPath(t, top, below, domain, box), class: `area s${i % 8}` }));
      }
      paths.push(s("path", { d: linePath(t, top, domain, box), class: `line s${i % 8}` }));
    });
    fill(lines, ...paths);
  }

  const isOverDays = (): boolean => domain.to - domain.from > 86_400_000;
  const when = (t: number | undefined): string => (isOverDays() ? dateTime(t) : clock(t));

  /** Shows the values at one index; where none is chosen those of the time shown, else the last known. */
  function choose(index: number, speak: boolean): void {
    const { t, series } = data;
    chosen = index;
    chosenT = t[index] ?? null;
    const mark = data.mark;
    const shown =
      index >= 0 ? index : typeof mark === "number" ? nearest(t, mark) : lastKnown(series);
    series.forEach((one, i) => {
      const value = values[i];
      if (value) setText(value, options.format(shown >= 0 ? one.values[shown] : null));
    });
    set(cross, "visibility", index >= 0 ? null : "hidden");
    root.classList.toggle("pointed", index >= 0);
    if (index < 0) {
      fill(dots);
      return;
    }
    const x = xOf(t[index] as number, domain, box);
    place(cross, x);
    const tops = options.stacked ? stack(series) : series.map((one) => one.values);
    const onRight = x > box.x + box.width - (isOverDays() ? 140 : 70);
    fill(
      dots,
      ...tops.map((top, i) => {
        const value = top[index];
        return (
          typeof value === "number" &&
          s("circle", { cx: x, cy: yOf(value, domain, box), r: 3, class: `s${i % 8}` })
        );
      }),
      s(
        "text",
        {
          x: onRight ? x - 5 : x + 5,
          y: TOP + 8,
          "text-anchor": onRight ? "end" : "start",
          class: "chart-when",
        },
        when(t[index]),
      ),
    );
    if (speak) {
      const all = series
        .map((one) => `${one.label} ${options.format(one.values[index])}`)
        .join(", ");
      setText(spoken, `${when(t[index])}: ${all}`);
    }
  }

  const timeAtX = (x: number): number =>
    domain.from + ((x - box.x) / box.width) * (domain.to - domain.from);
  const timeAt = (event: MouseEvent): number =>
    timeAtX(event.clientX - plot.getBoundingClientRect().left);
  plot.addEventListener("pointermove", (event) => {
    byKey = false;
    pointerX = event.clientX - plot.getBoundingClientRect().left;
    choose(nearest(data.t, timeAtX(pointerX)), false);
  });
  plot.addEventListener("pointerleave", () => {
    pointerX = null;
    if (!byKey) choose(-1, false);
  });
  plot.addEventListener("blur", () => {
    if (byKey) choose(-1, false);
    byKey = false;
  });
  plot.addEventListener("click", (event) => {
    const t = data.t[nearest(data.t, timeAt(event))];
    if (t !== undefined) options.onPick?.(t);
  });
  plot.addEventListener("keydown", (event) => {
    const last = data.t.length - 1;
    const now = chosen < 0 ? last + 1 : chosen;
    const step = event.shiftKey ? 10 : 1;
    const to = { ArrowLeft: now - step, ArrowRight: now + step, Home: 0, End: last }[event.key];
    if (event.key === "Enter" && chosen >= 0) {
      const t = data.t[chosen];
      if (t !== undefined) options.onPick?.(t);
    } else if (event.key === "Escape") choose(-1, false);
    else if (to === undefined || last < 0) return;
    else {
      byKey = true;
      pointerX = null;
      choose(Math.min(last, Math.max(0, to)), true);
    }
    event.preventDefault();
  });

  return {
    root,
    draw(next) {
      data = next;
      paint();
    },
    destroy() {
      resized.disconnect();
      root.remove();
    },
  };
}
