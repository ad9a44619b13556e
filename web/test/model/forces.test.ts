// SPDX-License-Identifier: Apache-2.0
import { forceCollide, forceManyBody, forceSimulation } from "d3-force";
import { afterEach, describe, expect, it, vi } from "vitest";
import { keepApart, pushApart } from "../../src/model/forces";
import type { LayoutInput, LayoutResult } from "../../src/model/layout";
import { LayoutService } from "../../src/model/layout-service";

interface Body {
  x: number;
  y: number;
  r: number;
}

const some = (): Body[] =>
  Array.from({ length: 30 }, (_, i) => ({
    x: 90 * Math.sin(i * 2.1) + i,
    y: 70 * Math.cos(i * 1.7) - i,
    r: 8 + (i % 5) * 6,
  }));

function after(bodies: Body[], force: Parameters<ReturnType<typeof forceSimulation>["force"]>[1]) {
  const simulation = forceSimulation<Body>(bodies).stop().force("one", force);
  for (let i = 0; i < 20; i++) simulation.tick();
  return bodies;
}

describe("forces", () => {
  it("push as those of d3 do without their short cuts", () => {
    const strength = (body: { r: number }) => -14 * body.r;
    const ours = after(some(), pushApart(strength) as never);
    const theirs = after(some(), forceManyBody<Body>().strength(strength).theta(0) as never);
    ours.forEach((body, i) => {
      expect(body.x).toBeCloseTo(theirs[i].x, 6);
      expect(body.y).toBeCloseTo(theirs[i].y, 6);
    });
  });

  it("leave nothing over another, as those of d3 do", () => {
    const least = (bodies: Body[]) =>
      Math.min(
        ...bodies.flatMap((a, i) =>
          bodies.slice(i + 1).map((b) => Math.hypot(a.x - b.x, a.y - b.y) - a.r - b.r),
        ),
      );
    expect(least(some())).toBeLessThan(-10);
    const ours = least(after(some(), keepApart((body) => body.r, 0.9, 3) as never));
    const theirs = least(
      after(
        some(),
        forceCollide<Body>((body) => body.r)
          .strength(0.9)
          .iterations(3) as never,
      ),
    );
    expect(ours).toBeGreaterThan(Math.min(-1, theirs - 1));
  });

  it("part bodies at the same place, the same way each time", () => {
    const at = () => Array.from({ length: 4 }, () => ({ x: 5, y: 5, r: 10 }));
    const parted = after(at(), keepApart((body) => body.r, 0.9, 3) as never);
    expect(parted).toEqual(after(at(), keepApart((body) => body.r, 0.9, 3) as never));
    expect(new Set(parted.map(({ x, y }) => `${x} ${y}`)).size).toBe(4);
    const pushed = after(at(), pushApart(() => -100) as never);
    for (const { x, y } of pushed) expect(Number.isFinite(x + y)).toBe(true);
  });
});

/** So many groups of one node each: a body each. */
const input = (groups: number): LayoutInput => ({
  aspect: 1,
  groups: Array.from({ length: groups }, (_, id) => ({ id, name: `g${id}` })),
  nodes: Array.from({ length: groups }, (_, id) => ({ id, name: `n${id}`, groups: [id] })),
});

describe("the layout's worker", () => {
  const workers: FakeWorker[] = [];
  class FakeWorker {
    posted: LayoutInput[] = [];
    onmessage: ((event: { data: LayoutResult }) => void) | null = null;
    onerror: (() => void) | null = null;
    terminate = vi.fn();
    constructor() {
      workers.push(this);
    }
    postMessage(asked: LayoutInput) {
      this.posted.push(asked);
    }
  }

  afterEach(() => {
    vi.unstubAllGlobals();
    vi.useRealTimers();
    workers.length = 0;
  });

  it("is started behind the first picture, and gets what was asked before", () => {
    vi.useFakeTimers();
    vi.stubGlobal("Worker", FakeWorker);
    const done = vi.fn();
    const service = new LayoutService(done);
    const first = input(3);
    service.ask(first);
    expect([done.mock.calls.length, workers.length]).toEqual([1, 0]);
    vi.runAllTimers();
    expect(workers[0].posted).toEqual([first]);
    const result = { groups: [], nodes: [] };
    workers[0].onmessage?.({ data: result });
    expect(done).toHaveBeenLastCalledWith(result);
    service.ask(input(4));
    expect([workers[0].posted.length, done.mock.calls.length]).toEqual([2, 2]);
    service.stop();
    expect(workers[0].terminate).toHaveBeenCalled();
  });

  it("that fails leaves the work to the page, with nothing forgotten", () => {
    vi.stubGlobal("Worker", FakeWorker);
    const done = vi.fn();
    const service = new LayoutService(done);
    service.ask(input(450));
    expect([done.mock.calls.length, workers[0].posted.length]).toEqual([0, 1]);
    workers[0].onerror?.();
    expect(done).toHaveBeenCalledTimes(1);
    expect(done.mock.calls[0][0].groups.length).toBe(450);
    service.ask(input(3));
    expect(done).toHaveBeenCalledTimes(2);
    service.stop();
  });

  it("is done without where there is none", () => {
    vi.stubGlobal("Worker", undefined);
    const done = vi.fn();
    new LayoutService(done).ask(input(450));
    expect(done).toHaveBeenCalledTimes(1);
  });
});
