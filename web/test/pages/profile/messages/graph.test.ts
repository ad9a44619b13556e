// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from "vitest";
import type { Communication, MessageEdge, End } from "../../../../src/pages/profile/sums-answers";
import {
  asked,
  heightOf,
  labels,
  layout,
  leftOut,
  loop,
  scaleOf,
  shortened,
  spoken,
  told,
  widthOf,
} from "../../../../src/pages/profile/messages/graph-model";

const end = (key: string, more: Partial<End> = {}): End => ({
  key,
  name: `process ${key}`,
  entry: "",
  processes: 1,
  process: Number(key),
  node: 0,
  sent: 0,
  sent_bytes: 0,
  received: 0,
  received_bytes: 0,
  within: 0,
  within_bytes: 0,
  ...more,
});
const edge = (from: number, to: number, count: number, bytes = count * 10): MessageEdge => ({
  from: String(from),
  to: String(to),
  count,
  bytes,
});
const size = { width: 700, height: 420 };

/** A server that all others ask, and one that asks itself. */
const star = (n: number): Pick<Communication, "ends" | "edges"> => ({
  ends: [
    end("0", { received: n }),
    ...Array.from({ length: n }, (_, i) => end(String(i + 1), { sent: 1 })),
  ],
  edges: [...Array.from({ length: n }, (_, i) => edge(i + 1, 0, i + 1)), edge(1, 1, 3)],
});

describe("the graph of communication", () => {
  it("is the same of the same answer, and takes the picture", () => {
    const spots = layout(star(20), "count", size);
    expect(layout(star(20), "count", size)).toEqual(spots);
    for (const { x, y } of spots) {
      expect(x).toBeGreaterThanOrEqual(0);
      expect(x).toBeLessThanOrEqual(size.width);
      expect(y).toBeGreaterThanOrEqual(0);
      expect(y).toBeLessThanOrEqual(size.height);
    }
    const across = spots.map(({ x }) => x);
    expect(Math.max(...across) - Math.min(...across)).toBeGreaterThan(size.width / 3);
  });

  it("has no end over another, as many as there may be, on a phone, too", () => {
    for (const box of [size, { width: 340, height: 380 }]) {
      const spots = layout(star(49), "count", box);
      for (const [i, a] of spots.entries())
        for (const b of spots.slice(i + 1))
          expect(Math.hypot(a.x - b.x, a.y - b.y)).toBeGreaterThan(Math.max(a.r, b.r));
    }
  });

  it("has ends that exchange more as larger ones", () => {
    const [server, worker] = layout(star(5), "count", size);
    expect(server?.r).toBeGreaterThan(worker?.r ?? 99);
    const [one] = layout({ ends: [end("1")], edges: [edge(1, 1, 1)] }, "count", size);
    expect(one).toMatchObject({ x: size.width / 2, y: size.height / 2 });
    expect(layout({ ends: [], edges: [] }, "count", size)).toEqual([]);
    expect(heightOf(50)).toBeGreaterThan(heightOf(2));
  });

  it("has edges that are thicker with more of what was chosen", () => {
    const edges = [edge(1, 2, 1, 5000), edge(2, 3, 1000, 1000)];
    const [few, many] = edges.map((one) => widthOf(one, "count", scaleOf(edges, "count")));
    expect(many).toBeGreaterThan(few ?? 99);
    const [large, small] = edges.map((one) => widthOf(one, "bytes", scaleOf(edges, "bytes")));
    expect(large).toBeGreaterThan(small ?? 99);
    // Messages may have no bytes that are known.
    expect(
      widthOf(edge(1, 2, 1, 0), "bytes", scaleOf([edge(1, 2, 1, 0)], "bytes")),
    ).toBeGreaterThan(0);
  });

  it("has names where there is room, none over another", () => {
    const spots = layout(star(40), "count", size);
    const names = labels(spots, (key) => `the process with number ${key}`, size);
    expect(names.length).toBeGreaterThan(5);
    expect(names[0]?.key).toBe("0");
    expect(new Set(names.map(({ key }) => key)).size).toBe(names.length);
    for (const { text } of names) expect(text.length).toBeLessThanOrEqual(24);
    for (const [i, a] of names.entries())
      for (const b of names.slice(i + 1)) expect(a.x === b.x && a.y === b.y).toBe(false);
    expect(shortened("short")).toBe("short");
    expect(shortened("a_rather_long_module_name:init/1", 10)).toBe("…me:init/1");
  });

  it("has a loop above what sends itself something", () => {
    expect(loop({ key: "1", x: 100, y: 100, r: 10 })).toMatch(/^M95.0,92.0C80.0,68.0 120.0,68.0/);
  });
});

describe("what is told of it", () => {
  const all = { ends: 3, edges: 4, count: 100, bytes: 2048 };
  const answer = (edges: MessageEdge[], passed = all): Communication => ({
    ends: [],
    edges,
    passed,
    all,
  });
  const of = asked({}, false);

  it("says what is there, what the filters leave, and what there is no room for", () => {
    const two = [edge(1, 2, 60, 1000), edge(2, 1, 40, 1048)];
    expect(told(answer([...two, edge(1, 1, 0, 0), edge(2, 2, 0, 0)]), of, "")).toBe(
      "100 messages (2 KiB) between 4 pairs of 3 processes.",
    );
    const some = { ends: 2, edges: 3, count: 90, bytes: 1024 };
    expect(told(answer([edge(1, 2, 60, 24)], some), { ...of, by: "kind" }, "")).toBe(
      "100 messages (2 KiB) between 4 pairs of 3 kinds of processes; the filters leave 3 pairs with 90 messages (1 KiB); there is no room for 2 pairs of these, with 30 messages (1000 B).",
    );
    expect(told(answer([edge(1, 2, 90, 1024)], { ...some, edges: 1 }), of, "server")).toContain(
      "around server there are 1 pair with 90 messages",
    );
    const nothing = { ends: 0, edges: 0, count: 0, bytes: 0 };
    expect(told(answer([], nothing), of, "")).toMatch(/; the filters leave none\.$/);
    expect(leftOut(two, all)).toEqual({ edges: 2, count: 0, bytes: 0 });
  });

  it("says an end to those who hear it", () => {
    expect(
      spoken(end("7", { sent: 3, sent_bytes: 10, within: 1, within_bytes: 2 }), "process"),
    ).toBe("process 7: messages sent 3 (10 B), received none, with itself 1 (2 B)");
    expect(spoken(end("x", { processes: 4, received: 1, within: 1 }), "kind")).toBe(
      "process x, 4 processes: messages sent none, received 1 (0 B), with each other 1 (0 B)",
    );
  });

  it("takes from the address what it can", () => {
    expect(asked({}, false)).toEqual({
      by: "process",
      sort: "count",
      least: 0,
      mean: 0,
      around: "",
    });
    expect(
      asked({ ends: "node", widths: "bytes", least: "12", mean: "3.7", around: "x" }, true),
    ).toEqual({ by: "node", sort: "bytes", least: 12, mean: 3, around: "x" });
    expect(
      asked({ ends: "node", widths: "wide", least: "-1", mean: "much", around: "" }, false),
    ).toEqual({ by: "process", sort: "count", least: 0, mean: 0, around: "" });
    expect(asked({ ends: "kind", least: "1e300" }, false)).toMatchObject({
      by: "kind",
      least: Number.MAX_SAFE_INTEGER,
    });
  });
});
