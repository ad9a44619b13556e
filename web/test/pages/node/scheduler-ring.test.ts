// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from "vitest";
import {
  distance,
  migrationPath,
  queueLength,
  queueStep,
  ringLayout,
  sector,
} from "../../../src/pages/node/scheduler-ring";

// Two sockets of two cores of two threads, numbered across the sockets as machines do.
const machine = [0, 1, 2, 3, 4, 5, 6, 7].map((i) => ({
  id: i + 1,
  socket: i % 2,
  core: Math.floor(i / 2) % 2,
}));

describe("the ring", () => {
  const layout = ringLayout(machine);
  it("orders schedulers by socket, core and number, without overlap", () => {
    expect(layout.slots.map((slot) => slot.id)).toEqual([1, 5, 3, 7, 2, 6, 4, 8]);
    layout.slots.forEach((slot, i) => {
      expect(slot.a1).toBeGreaterThan(slot.a0);
      const next = layout.slots[i + 1];
      expect(next ? next.a0 : 2 * Math.PI).toBeGreaterThan(slot.a1);
    });
    expect(layout.slots[0].a0).toBeGreaterThan(0);
  });
  it("joins the schedulers of a core and of a socket", () => {
    expect(layout.cores.map((core) => core.ids)).toEqual([
      [1, 5],
      [3, 7],
      [2, 6],
      [4, 8],
    ]);
    expect(layout.sockets.map((socket) => socket.ids)).toEqual([
      [1, 5, 3, 7],
      [2, 6, 4, 8],
    ]);
  });
  it("tells distances", () => {
    expect(distance(layout, 1, 5)).toBe("core");
    expect(distance(layout, 1, 3)).toBe("socket");
    expect(distance(layout, 1, 2)).toBe("other");
    expect(distance(layout, 1, 99)).toBe("unknown");
  });
  it("stands without a topology, and with one scheduler or none", () => {
    const flat = ringLayout([1, 2, 3].map((id) => ({ id, socket: null, core: null })));
    expect(flat.slots.map((slot) => slot.id)).toEqual([1, 2, 3]);
    expect(flat.cores).toEqual([]);
    expect(flat.sockets).toHaveLength(1);
    expect(distance(flat, 1, 2)).toBe("unknown");
    expect(ringLayout([]).slots).toEqual([]);
    const one = ringLayout([{ id: 1, socket: 0, core: 0 }]);
    expect(sector(one.slots[0], 10, 20)).not.toContain("NaN");
  });
});

describe("run queues", () => {
  it("have one scale for all", () => {
    expect(queueLength(0)).toBe(0);
    expect(queueLength(1)).toBeGreaterThan(0.1);
    expect(queueLength(100)).toBe(1);
    expect(queueLength(5000)).toBe(1);
    expect([0, 1, 2, 3, 9, 10, 49, 50, 1e6].map(queueStep)).toEqual([0, 1, 1, 2, 2, 3, 3, 4, 4]);
  });
});

describe("migrations", () => {
  it("are drawn between schedulers that are there", () => {
    const layout = ringLayout(machine);
    expect(migrationPath(layout, 1, 2, 50)).toMatch(/^M-?[\d.]+,-?[\d.]+Q/);
    expect(migrationPath(layout, 1, 1, 50)).toBeNull();
    expect(migrationPath(layout, 1, 42, 50)).toBeNull();
  });
});
