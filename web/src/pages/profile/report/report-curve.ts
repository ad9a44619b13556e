// SPDX-License-Identifier: Apache-2.0
// How many processes run and wait for a scheduler over the whole recording, with the number of schedulers as a line.
import { children as fill, h, s, set } from "../../../lib/dom";
import { count, number } from "../../../lib/format";
import { areaPath, type Box, type Domain, stack, xOf, yOf } from "../../../lib/chart-model";
import { valueTicks } from "../../../lib/ticks";
import type { About } from "../answers";
import type { Report } from "../sums-answers";
import { tickLabel, ticks, whole } from "../range";
import { curve, curveText } from "./report-model";

const HEIGHT = 170;
const BOTTOM = 20;

export class ReportCurve {
  private readonly svg = s("svg", { width: "100%", height: HEIGHT, role: "img" });
  readonly root = h("div", { class: "report-curve" }, this.svg);
  private width = 0;
  private shown: [Report, About] | null = null;
  private readonly resize = new ResizeObserver(() => {
    const width = Math.floor(this.root.clientWidth);
    if (width > 0 && width !== this.width) {
      this.width = width;
      this.paint();
    }
  });

  constructor() {
    this.resize.observe(this.root);
  }

  draw(report: Report, about: About): void {
    this.shown = [report, about];
    set(this.svg, "aria-label", curveText(report, about));
    this.paint();
  }

  destroy(): void {
    this.resize.disconnect();
  }

  private paint(): void {
    if (this.shown === null || this.width === 0) return;
    const [report, about] = this.shown;
    const { t, running, runnable } = curve(report);
    const tops = stack([
      { key: "running", label: "run", values: running },
      { key: "runnable", label: "wait for a scheduler", values: runnable },
    ]);
    const most = Math.max(about.online ?? 0, ...(tops[1] ?? []).map((value) => value ?? 0));
    const values = valueTicks(most, 3);
    const domain: Domain = { from: 0, to: Math.max(1, about.duration), max: values.at(-1) ?? 1 };
    const left = 10 + 6.3 * Math.max(...values.map((value) => number(value).length));
    const box: Box = {
      x: left,
      y: 6,
      width: Math.max(1, this.width - left - 12),
      height: HEIGHT - 6 - BOTTOM,
    };
    const area = (i: number, kind: string) =>
      s("path", {
        d: areaPath(t, tops[i] ?? [], tops[i - 1] ?? null, domain, box),
        class: `report-area key-${kind}`,
      });
    set(this.svg, "viewBox", `0 0 ${this.width} ${HEIGHT}`);
    fill(
      this.svg,
      ...this.axes(values, domain, box),
      area(0, "running"),
      area(1, "runnable"),
      about.online === null ? null : level(about.online, domain, box),
    );
  }

  private axes(values: readonly number[], domain: Domain, box: Box): SVGElement[] {
    const times = ticks(whole(domain.to), Math.max(2, Math.floor(box.width / 90)));
    return [
      ...values.flatMap((value) => {
        const y = Math.round(yOf(value, domain, box)) + 0.5;
        return [
          s("line", { x1: box.x, x2: box.x + box.width, y1: y, y2: y, class: "report-grid" }),
          s("text", { x: box.x - 5, y: y + 3.5, "text-anchor": "end" }, number(value)),
        ];
      }),
      ...times.at
        .map((at) => [at, xOf(at, domain, box)] as const)
        .filter(([, x]) => x < box.x + box.width - 16)
        .map(([at, x]) =>
          s("text", { x, y: HEIGHT - 4, "text-anchor": "middle" }, tickLabel(at, times.step)),
        ),
    ];
  }
}

function level(online: number, domain: Domain, box: Box): SVGElement {
  const y = Math.round(yOf(online, domain, box)) + 0.5;
  return s(
    "g",
    {},
    s("line", { x1: box.x, x2: box.x + box.width, y1: y, y2: y, class: "report-level" }),
    s(
      "text",
      { x: box.x + box.width, y: y - 4, "text-anchor": "end" },
      `${count(online)} schedulers`,
    ),
  );
}
