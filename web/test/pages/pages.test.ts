// SPDX-License-Identifier: Apache-2.0
// What the pages of numbers show, without showing it.
import { describe, expect, it } from "vitest";
import {
  earlier,
  type Filter,
  kindsOf as eventKinds,
  merged,
  passing,
} from "../../src/pages/events/model";
import { inOrder } from "../../src/model/findings";
import { counted, kindsOf, opened, unchecked, wanted } from "../../src/pages/findings/model";
import { endAround } from "../../src/ui/period";
import { exportOf } from "../../src/ui/exporting";
import { about } from "../../src/pages/node/concerns";
import { cells } from "../../src/pages/node/heat";
import { limitsOf, memoryOf, schedulersOf } from "../../src/pages/node/detail-model";
import type { ClusterEvent, Detail, Finding, Severity } from "../../src/model/protocol";
import {
  byOf,
  gatewaySums,
  of,
  rowId,
  seriesFor,
  summary,
  sums,
} from "../../src/pages/traffic/model";

const detail = (more: Partial<Detail>): Detail => ({ type: "detail", t: 0, node: "a@h", ...more });

describe("a node's detail", () => {
  it("has the queues of its schedulers, and those of the dirty ones apart", () => {
    const found = schedulersOf(
      detail({
        schedulers: [
          { id: 1, type: "normal", util: 0.5 },
          { id: 2, type: "normal", util: 0.1, queue: 7 },
          { id: 3, type: "dirty_cpu", util: 0 },
        ],
        queues: [4, 5, 6, 1],
      }),
    );
    expect(found.all.map((one) => one.queue)).toEqual([4, 7, undefined]);
    expect(found.dirty).toEqual([6, 1]);
    expect(found.measured).toBe(true);
  });
  it("makes the ring of the queues alone where utilisation is not known", () => {
    const found = schedulersOf(detail({ schedulers: [], queues: [1, 2, 0, 0] }));
    expect(found.all).toEqual([
      { id: 1, type: "normal", queue: 1, util: null },
      { id: 2, type: "normal", queue: 2, util: null },
    ]);
    expect(found.measured).toBe(false);
    expect(schedulersOf(detail({})).all).toEqual([]);
    expect(schedulersOf(detail({})).dirty).toEqual([null, null]);
  });
  it("tells limits, whole pairs or apart", () => {
    const pairs = { procs: [10, 100], atoms: [5, 50] } as unknown as Record<string, number>;
    expect(
      limitsOf(detail({ limits: pairs })).map((one) => [one.key, one.used, one.limit]),
    ).toEqual([
      ["procs", 10, 100],
      ["atoms", 5, 50],
    ]);
    const apart = limitsOf(detail({ limits: { ports: 3, port_limit: 9 } }));
    expect(apart.map((one) => [one.key, one.used, one.limit])).toEqual([["ports", 3, 9]]);
    expect(limitsOf(detail({}))).toEqual([]);
  });
  it("has kinds of memory that add up to the whole", () => {
    const memory = { total: 100, processes: 40, system: 60, binary: 10, ets: 5, atom: 1, code: 20 };
    const { total, kinds } = memoryOf(memory);
    expect(total).toBe(100);
    expect(kinds.system).toBe(24);
    expect(Object.values(kinds).reduce((sum: number, one) => sum + (one ?? 0), 0)).toBe(100);
    expect(memoryOf(undefined).kinds.binary).toBeNull();
  });
});

describe("traffic", () => {
  const rates = { msgs_s: 1, bytes_s: 10, msgs: 60, bytes: 600, p50: 1, p95: 1, max: 2 };
  it("has rows of links, edges, gateways and groups", () => {
    const link = rowId({ from: "a@h", to: "b@h", ...rates });
    expect(seriesFor("link", link)).toEqual({ kind: "link", from: "a@h", to: "b@h" });
    expect(of("link", link)).toBe("a@h → b@h");
    expect(seriesFor("edge", rowId({ from: "{g, 1}", to: "g2", ...rates }))).toEqual({
      kind: "edge",
      from: "{g, 1}",
      to: "g2",
    });
    expect(seriesFor("gateway", rowId({ node: "a@h", groups: ["g"], ...rates }))).toEqual({
      kind: "gateway",
      node: "a@h",
    });
    expect(seriesFor("group", rowId({ group: "g", ...rates }))).toEqual({
      kind: "group",
      group: "g",
    });
    expect(seriesFor("group", null)).toEqual({ kind: "total" });
  });
  it("is by link where nothing that is known is asked for", () => {
    expect(["edge", "x", undefined].map(byOf)).toEqual(["edge", "link", "link"]);
  });
  it("is summed", () => {
    expect(sums([{ ...rates }, { ...rates }])).toEqual({
      msgs_s: 2,
      bytes_s: 20,
      msgs: 120,
      bytes: 1200,
      forwarded_s: null,
    });
    // Nobody counts the bytes of routed messages, and not each gateway has a probe.
    const { bytes: _, bytes_s: __, ...routed } = rates;
    expect(sums([routed])).toMatchObject({ msgs_s: 1, bytes: null, bytes_s: null });
    expect(sums([{ ...rates, forwarded_s: 3 }, rates]).forwarded_s).toBe(3);
    expect(sums([]).msgs_s).toBeNull();
  });
  it("has routed messages by group edge", () => {
    const edge = rowId({ from: "g", to: "(free)", ...rates });
    expect(seriesFor("routed", edge)).toEqual({ kind: "routed", from: "g", to: "(free)" });
    expect(byOf("routed")).toBe("routed");
  });
  it("by gateway counts each message once in all", () => {
    const gateways = ["a", "b"].map((node) => ({ ...rates, node, forwarded_s: 3 }));
    const link = (from: string, to: string, msgs_s: number) => ({ ...rates, from, to, msgs_s });
    const links = [link("a", "b", 5), link("a", "x", 2), link("y", "b", 1), link("x", "y", 9)];
    expect(gatewaySums(gateways, links)).toMatchObject({ msgs_s: 8, forwarded_s: 6 });
    expect(gatewaySums(gateways.slice(0, 1), links)).toMatchObject({ msgs_s: 7, forwarded_s: 3 });
    // Where the server has left links out nobody knows the sum.
    const cut = Array.from({ length: 5000 }, () => link("a", "x", 1));
    expect(gatewaySums(gateways, cut)).toMatchObject({ msgs_s: null, forwarded_s: 6 });
  });
  it("adds up in words, with the nodes of no group and the hidden ones told apart", () => {
    const row = (msgs_s: number, where: object) => ({ ...rates, msgs_s, ...where });
    const groups = [row(7, { group: "g" }), row(2, { group: "(free)" })];
    const edges = [row(4, { from: "g", to: "h" }), row(1, { from: "h", to: "(free)" })];
    const plain =
      "Inside groups 7, between them 4 and with and between free nodes 3: all traffic is 14 msg/s.";
    expect(summary("group", groups, edges)).toBe(plain);
    expect(summary("edge", edges, groups)).toBe(plain);
    const tools = [
      row(8, { from: "(hidden)", to: "g" }),
      row(1, { from: "(free)", to: "(hidden)" }),
    ];
    expect(summary("edge", [...edges, ...tools], groups)).toBe(
      "Inside groups 7, between them 4, with and between free nodes 3 and with hidden nodes, such as monitors and tools, 9: all traffic is 23 msg/s.",
    );
    expect(summary("edge", [], [groups[0]])).toBe(
      "Inside groups 7 and between them 0: all traffic is 7 msg/s.",
    );
    expect(summary("edge", [], [])).toBeNull();
    expect(summary("link", groups, [])).toBeNull();
    expect(summary("routed", edges, [])).not.toContain("recording");
    expect(summary("routed", edges, [], true)).toContain("before version 0.1.0");
  });
});

describe("what cannot be found", () => {
  const node = (source: string, status: "up" | "down" = "up") => ({ source, status, why: null });
  it("is told of nodes whose probe does not tell", () => {
    expect(unchecked([node("probe"), node("none", "down")])).toBeNull();
    expect(unchecked([])).toBeNull();
    expect(unchecked([node("stock"), node("stock")])).toMatch(/^No node has a probe/);
    expect(unchecked([node("stock"), node("probe")])).toMatch(/^1 of 2 nodes has a probe/);
  });
});

describe("events", () => {
  const event = (id: number, more: Partial<ClusterEvent> = {}): ClusterEvent => ({
    id,
    t: id * 10,
    kind: "k",
    level: "info",
    text: "",
    ...more,
  });
  const all: Filter = { kind: "", level: "", node: "", group: "", until: null };
  it("are merged by id", () => {
    expect(merged([event(3), event(5)], [event(5), event(1)]).map((one) => one.id)).toEqual([
      1, 3, 5,
    ]);
  });
  it("pass by kind, level and worse, place and time", () => {
    const events = [
      event(1),
      event(2, { level: "error", node: "a@h" }),
      event(3, { kind: "x", level: "warning", group: "g" }),
    ];
    const ids = (filter: Partial<Filter>) =>
      passing(events, { ...all, ...filter }).map((one) => one.id);
    expect(ids({})).toEqual([1, 2, 3]);
    expect(ids({ level: "warning" })).toEqual([2, 3]);
    expect(ids({ kind: "x" })).toEqual([3]);
    expect(ids({ node: "a@h" })).toEqual([2]);
    expect(ids({ group: "g" })).toEqual([3]);
    expect(ids({ until: 20 })).toEqual([1, 2]);
  });
  it("of before are asked for by the oldest", () => {
    expect(earlier([event(4)], [event(2), event(4)])).toBe(4);
    expect(earlier([], [event(2)])).toBe(2);
    expect(earlier([], [])).toBeNull();
    expect(eventKinds([event(1), event(2, { kind: "b" })], "z")).toEqual(["b", "k", "z"]);
  });
});

describe("findings", () => {
  const finding = (id: string, severity: Severity, since: number, kind = "k"): Finding => ({
    id,
    kind,
    severity,
    since,
    t: since,
    where: {},
    text: "",
    evidence: [],
    remedy: "",
  });
  const some = [
    finding("a", "info", 1),
    finding("b", "critical", 1),
    finding("c", "critical", 2, "l"),
    finding("d", "warning", 5),
  ];
  it("are worst first, then newest", () => {
    expect(inOrder(some).map((one) => one.id)).toEqual(["c", "b", "d", "a"]);
    expect(counted(some)).toBe("2 critical, 1 warning, 1 info");
    const warning = some.filter((finding) => finding.severity === "warning");
    expect(counted([...warning, ...warning], 1)).toBe("2 warnings; 1 in another state");
    expect(counted([])).toBe("None at this time.");
  });
  it("pass by severity and kind", () => {
    expect(wanted(some, "critical").map((one) => one.id)).toEqual(["b", "c"]);
    expect(wanted(some, "all", "l").map((one) => one.id)).toEqual(["c"]);
    expect(kindsOf(some, "z")).toEqual([
      ["k", 3],
      ["l", 1],
      ["z", 0],
    ]);
  });
  it("are open at first where they are few, else the first of each kind", () => {
    expect([...opened(some)]).toEqual(["a", "b", "c", "d"]);
    expect([...opened([...some, finding("e", "info", 9)])]).toEqual(["a", "c"]);
  });
});

describe("schedulers over time", () => {
  const report = (t: number, util: number): Detail =>
    detail({ t, schedulers: [{ id: 1, type: "normal", util }] });
  it("have a cell for each report, broken where none came", () => {
    const found = cells([report(1000, 0.1), report(2000, 0.2), report(60_000, 0.3)], 500, 59_000);
    expect(found.map((one) => [one.from, one.to, one.utils[0]])).toEqual([
      [500, 1000, 0.1],
      [1000, 2000, 0.2],
      [55_000, 59_000, 0.3],
    ]);
    expect(cells([report(1000, 0.1)], 2000, 3000)).toEqual([]);
  });
});

describe("what concerns a node", () => {
  const of = (id: string, where: Finding["where"]): Finding => ({
    id,
    kind: "k",
    severity: "info",
    since: 0,
    t: 0,
    where,
    text: "",
    evidence: [],
    remedy: "",
  });
  it("names it as a place or as an end", () => {
    const all = [
      of("1", { node: "a" }),
      of("2", { from: "b", to: "a" }),
      of("3", { group: "a" }),
      of("4", { node: "b" }),
    ];
    expect(about(all, "a").map((one) => one.id)).toEqual(["1", "2"]);
  });
});

describe("an export", () => {
  it("is asked for by what, by whom and when, and its file says so", () => {
    expect(
      exportOf({ what: "traffic", by: "edge", from: 0, to: Date.UTC(2026, 0, 2, 3, 4, 5) }),
    ).toEqual({
      path: "api/v1/export?format=csv&what=traffic&from=0&to=1767323045000&by=edge",
      file: "sderl-traffic-edge-2026-01-02T03-04-05.csv",
    });
    expect(exportOf({ what: "events", from: 1, to: 2 }).file).toBe(
      "sderl-events-1970-01-01T00-00-00.csv",
    );
  });
});

describe("the period around a time", () => {
  it("has a quarter after it, what there is at the end, and more at the beginning", () => {
    expect(endAround(500, 100, [0, 1000])).toBe(525);
    expect(endAround(990, 100, [0, 1000])).toBe(1000);
    expect(endAround(10, 100, [0, 1000])).toBe(100);
    expect(endAround(10, 100, [0, 50])).toBe(50);
    expect(endAround(70, 100, [0, 50])).toBe(70);
  });
});
