// SPDX-License-Identifier: Apache-2.0
// Front pages: charts that a person has put together, in the address and as the server keeps them.
import type { Series } from "../../lib/chart-model";
import { natural } from "../../lib/natural";
import type { Front, FrontChart, Metric, Place } from "../../model/protocol";

export const WINDOWS = [
  ["15m", "15 min", 900_000],
  ["hour", "1 h", 3_600_000],
  ["day", "1 d", 86_400_000],
  ["week", "7 d", 604_800_000],
  ["month", "30 d", 2_592_000_000],
] as const;
export type WindowName = (typeof WINDOWS)[number][0];

export const MOST_CHARTS = 24;
/** More lines than this cannot be told apart. */
export const MOST_LINES = 8;

export const windowMs = (name: WindowName): number =>
  WINDOWS.find(([one]) => one === name)?.[2] ?? 3_600_000;

export const asWindow = (text: string | undefined): WindowName | null =>
  WINDOWS.find(([one]) => one === text)?.[0] ?? null;

const CLUSTER: Place = { kind: "cluster" };

/** The charts where no page is chosen: the load, and the application's own metrics. */
export function overview(metrics: readonly Metric[]): FrontChart[] {
  const own = metrics.filter((metric) => metric.kind !== "number").slice(0, 6);
  return ["util", "mem", "out_msgs_s", "procs", ...own.map((metric) => metric.name)]
    .filter((name) => metrics.some((metric) => metric.name === name))
    .map((metric) => ({ metric, place: CLUSTER }));
}

const KINDS = { c: "cluster", f: "family", g: "group", n: "node" } as const;
type Letter = keyof typeof KINDS;

/** Charts in an address: `mem~c_util~f~web`; what has a meaning there is escaped. */
export const encodeCharts = (charts: readonly FrontChart[]): string =>
  charts
    .map(({ metric, place }) => {
      const letter = place.kind[0] as Letter;
      return [metric, letter, ...(place.kind === "cluster" ? [] : [place.name])]
        .map(escaped)
        .join("~");
    })
    .join("_~");

const escaped = (text: string): string => text.replaceAll("!", "!!").replaceAll("~", "!-");
const plain = (text: string): string =>
  text.replaceAll(/!([!-])/g, (_, one: string) => (one === "!" ? "!" : "~"));

/** The charts of an address; what is none is left out. */
export function decodeCharts(text: string): FrontChart[] {
  const charts: FrontChart[] = [];
  for (const part of text.split("_~")) {
    const [metric = "", letter = "", name] = part.split("~").map(plain);
    const kind = KINDS[letter as Letter] as Place["kind"] | undefined;
    if (metric === "" || kind === undefined || charts.length === MOST_CHARTS) continue;
    if (kind === "cluster") charts.push({ metric, place: CLUSTER });
    else if (name) charts.push({ metric, place: { kind, name } });
  }
  return charts;
}

export const placeText = (place: Place): string =>
  place.kind === "cluster" ? "the cluster" : `${place.kind} ${place.name}`;

const TOGETHER = { sum: "sum", mean: "mean", max: "highest" } as const;

/** Below a chart's title: what it is, and how the nodes are put together. */
export function about(metric: Metric, place: Place): string {
  const what = [
    metric.about,
    metric.unit === "" || metric.unit === "share" ? "" : `in ${metric.unit}`,
  ]
    .filter((text) => text !== "")
    .join(", ");
  const over = place.kind === "node" ? "" : `${TOGETHER[metric.total]} of the nodes`;
  return [what, over].filter((text) => text !== "").join("; ");
}

/** The metric of a series' name: `orders` of `orders{status="ok"}`. */
export const nameOf = (series: string): string => series.split("{", 1)[0] as string;

export const metricOf = (metrics: readonly Metric[], name: string): Metric | undefined =>
  metrics.find((metric) => metric.name === nameOf(name));

/** The tags that metrics are for. */
export const tagsOf = (metrics: readonly Metric[]): string[] =>
  [...new Set(metrics.flatMap((metric) => metric.for))].sort(natural);

const isFor = (metric: Metric, tag: string): boolean => tag === "" || metric.for.includes(tag);

/** The places in a page of the charts that are for a tag. */
export function chartsFor(
  charts: readonly FrontChart[],
  metrics: readonly Metric[],
  tag: string,
): number[] {
  return [...charts.keys()].filter((at) => {
    const metric = metricOf(metrics, (charts[at] as FrontChart).metric);
    return tag === "" || (metric !== undefined && isFor(metric, tag));
  });
}

/** What the form offers under a tag, the application's own first. */
export const offered = (metrics: readonly Metric[], tag: string): Metric[] =>
  metrics
    .filter((metric) => isFor(metric, tag))
    .sort((a, b) => rank(a) - rank(b) || natural(a.name, b.name));

/** The tag by which the form offers metrics: the page's where that has changed, or else its own. */
export function formTag(
  own: string,
  page: string,
  before: string | null,
  tags: readonly string[],
): string {
  const chosen = page === before ? own : page;
  return tags.includes(chosen) ? chosen : "";
}

const rank = (metric: Metric): number => (metric.kind === "number" ? 1 : 0);

/**
 * The lines of an answer: the largest, in the order of their names, so that each keeps its colour while they rise and
 * fall; and how many more there would be.
 */
export function lines(
  columns: Readonly<Record<string, (number | null)[]>>,
  name: string,
): { series: Series[]; more: number } {
  const weight = (values: readonly (number | null)[]): number =>
    values.reduce<number>((sum, value) => sum + Math.abs(value ?? 0), 0);
  const largest = Object.entries(columns)
    .map(([key, values]) => ({ key, values, weight: weight(values) }))
    .sort((a, b) => b.weight - a.weight || natural(a.key, b.key))
    .slice(0, MOST_LINES);
  return {
    series: largest
      .sort((a, b) => natural(a.key, b.key))
      .map(({ key, values }) => ({ key, label: label(key, name), values })),
    more: Math.max(0, Object.keys(columns).length - MOST_LINES),
  };
}

/** Only what tells the series of a metric apart. */
function label(key: string, name: string): string {
  const tags = key.slice(nameOf(key).length);
  return tags === "" || key === name ? key : tags.slice(1, -1).replaceAll('"', "");
}

export const sameCharts = (a: readonly FrontChart[], b: readonly FrontChart[]): boolean =>
  encodeCharts(a) === encodeCharts(b);

/** A page as it stands in the address: a saved one, with the changes that were not saved. */
export interface Draft {
  charts: FrontChart[];
  window: WindowName;
  changed: boolean;
}

export function draft(
  query: Readonly<Record<string, string>>,
  saved: Front | undefined,
  metrics: readonly Metric[],
): Draft {
  const base = saved?.charts ?? overview(metrics);
  const given = query["charts"];
  const charts = given === undefined ? base : given === "none" ? [] : decodeCharts(given);
  const before = asWindow(saved?.window) ?? "hour";
  const window = asWindow(query["window"]) ?? before;
  return { charts, window, changed: !sameCharts(charts, base) || window !== before };
}

/** Moves one to another place. */
export function moved<T>(list: readonly T[], from: number, to: number): T[] {
  const next = [...list];
  const [one] = next.splice(from, 1);
  if (one !== undefined) next.splice(Math.max(0, Math.min(next.length, to)), 0, one);
  return next;
}
