// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from "vitest";
import type { Front, FrontChart, Metric } from "../../../src/model/protocol";
import {
  about,
  chartsFor,
  decodeCharts,
  draft,
  encodeCharts,
  formTag,
  lines,
  metricOf,
  MOST_CHARTS,
  MOST_LINES,
  moved,
  offered,
  overview,
  tagsOf,
  windowMs,
} from "../../../src/pages/metrics/model";
import { METRICS } from "../../../src/dev/metrics";
import { family } from "../../../src/model/places";

const odd: FrontChart[] = [
  { metric: "mem", place: { kind: "cluster" } },
  { metric: 'orders{status="a~b!"}', place: { kind: "group", name: "{g,~_~ä!}" } },
  { metric: "util", place: { kind: "family", name: "web" } },
  { metric: "util", place: { kind: "node", name: "_~n1@h" } },
];

describe("the form", () => {
  it("keeps its tag until the page has another one", () => {
    const tags = ["dev", "op"];
    expect(formTag("", "op", null, tags)).toBe("op");
    expect(formTag("dev", "op", "op", tags)).toBe("dev");
    expect(formTag("", "op", "op", tags)).toBe("");
    expect(formTag("dev", "op", "", tags)).toBe("op");
    expect(formTag("dev", "", "op", tags)).toBe("");
    // No metric has it any more.
    expect(formTag("shop", "", "", tags)).toBe("");
    expect(formTag("dev", "shop", "", tags)).toBe("");
  });

  it("offers what is for a tag, the application's own first", () => {
    expect(tagsOf(METRICS)).toEqual(["dev", "op", "shop"]);
    const names = (tag: string) => offered(METRICS, tag).map((metric) => metric.name);
    expect(names("shop")).toEqual(["orders"]);
    expect(names("op")).toEqual(["mem", "out_msgs_s", "procs", "util"]);
    expect(names("dev")).toContain("gc_s");
    expect(names("").slice(0, 2)).toEqual(["orders", "sessions"]);
    expect(names("")).toHaveLength(METRICS.length);
  });
});

describe("charts", () => {
  it("are chosen by the tags that their metrics are for", () => {
    const charts = ["gc_s", "orders", "mem", "gone"].map((metric): FrontChart => ({
      metric,
      place: { kind: "cluster" },
    }));
    expect(chartsFor(charts, METRICS, "")).toEqual([0, 1, 2, 3]);
    expect(chartsFor(charts, METRICS, "op")).toEqual([2]);
    expect(chartsFor(charts, METRICS, "dev")).toEqual([0, 2]);
    expect(chartsFor(charts, METRICS, "shop")).toEqual([1]);
    expect(chartsFor(charts, METRICS, "nobody")).toEqual([]);
  });
});

describe("an address", () => {
  it("has the charts, whatever their names", () => {
    expect(decodeCharts(encodeCharts(odd))).toEqual(odd);
    for (const one of odd) expect(decodeCharts(encodeCharts([one]))).toEqual([one]);
  });
  it("leaves out what is no chart", () => {
    expect(decodeCharts("")).toEqual([]);
    expect(decodeCharts("mem_~~c_~mem~x_~mem~g_~mem~c~more")).toEqual([
      { metric: "mem", place: { kind: "cluster" } },
    ]);
  });
  it("has no more than a page may have", () => {
    const many = Array.from({ length: 40 }, () => odd[0] as FrontChart);
    expect(decodeCharts(encodeCharts(many))).toHaveLength(MOST_CHARTS);
  });
});

describe("a page", () => {
  const saved: Front = { name: "Shop", window: "day", charts: odd, rev: 3 };
  it("is the saved one until something is changed", () => {
    expect(draft({}, saved, METRICS)).toEqual({ charts: odd, window: "day", changed: false });
    expect(draft({ charts: encodeCharts(odd) }, saved, METRICS).changed).toBe(false);
    expect(draft({ window: "week" }, saved, METRICS)).toMatchObject({
      window: "week",
      changed: true,
    });
    expect(draft({ charts: "none" }, saved, METRICS)).toMatchObject({ charts: [], changed: true });
    expect(draft({ window: "year" }, saved, METRICS)).toMatchObject({ window: "day" });
  });
  it("begins with an overview, the application's own metrics in it", () => {
    const names = draft({}, undefined, METRICS).charts.map((one) => one.metric);
    expect(names).toEqual(["util", "mem", "out_msgs_s", "procs", "orders", "sessions"]);
    expect(overview([])).toEqual([]);
  });
  it("has its charts moved, never out of it", () => {
    expect(moved([1, 2, 3], 0, 1)).toEqual([2, 1, 3]);
    expect(moved([1, 2, 3], 0, -1)).toEqual([1, 2, 3]);
    expect(moved([1, 2, 3], 2, 9)).toEqual([1, 2, 3]);
  });
  it("shows as much as its window says", () => {
    expect([windowMs("15m"), windowMs("month")]).toEqual([900_000, 2_592_000_000]);
  });
});

describe("a chart", () => {
  const orders = METRICS.find((one) => one.name === "orders") as Metric;
  it("says what it is and how nodes are put together", () => {
    expect(about(orders, { kind: "cluster" })).toBe(
      "Orders that were paid, in orders/s; sum of the nodes",
    );
    expect(about(orders, { kind: "node", name: "n" })).toBe("Orders that were paid, in orders/s");
  });
  it("finds the metric of a series", () => {
    expect(metricOf(METRICS, 'orders{status="ok"}')).toBe(orders);
    expect(metricOf(METRICS, "nothing")).toBeUndefined();
  });
  it("draws the largest series, named by their tags alone", () => {
    const columns = Object.fromEntries(
      Array.from({ length: 10 }, (_, i) => [`orders{status="s${i}"}`, [i, null]]),
    );
    const { series, more } = lines(columns, "orders");
    expect(series).toHaveLength(MOST_LINES);
    expect(more).toBe(2);
    expect(series.map((one) => one.label)).toEqual(
      [2, 3, 4, 5, 6, 7, 8, 9].map((i) => `status=s${i}`),
    );
    expect(series[7]).toEqual({
      key: 'orders{status="s9"}',
      label: "status=s9",
      values: [9, null],
    });
    expect(lines({ mem: [1] }, "mem").series[0]?.label).toBe("mem");
  });
});

it("tells the family of a node", () => {
  expect(["web12@host", "web-12@host", "web_1", "web"].map(family)).toEqual([
    "web",
    "web",
    "web",
    "web",
  ]);
});
