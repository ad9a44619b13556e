// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from "vitest";
import { beside, type Room } from "../../../src/pages/groups/geometry";

const size = { width: 250, height: 200 };
const desk: Room = { width: 1000, height: 700, top: 0, bottom: 0 };
const phone: Room = { width: 360, height: 600, top: 160, bottom: 0 };
const covers = (circle: { x: number; y: number; r: number }, room: Room) => {
  const { left, top } = beside(circle, size, room);
  const x = Math.max(left, Math.min(circle.x, left + size.width));
  const y = Math.max(top, Math.min(circle.y, top + size.height));
  return Math.hypot(x - circle.x, y - circle.y) < circle.r;
};

describe("a tooltip", () => {
  it("stands at the right of what it explains, else at its left", () => {
    expect(beside({ x: 300, y: 300, r: 20 }, size, desk)).toEqual({ left: 332, top: 200 });
    expect(beside({ x: 900, y: 300, r: 20 }, size, desk)).toEqual({ left: 618, top: 200 });
  });

  it("stands below or above it where there is no room at its sides", () => {
    expect(beside({ x: 180, y: 200, r: 10 }, size, phone)).toEqual({ left: 55, top: 222 });
    expect(beside({ x: 180, y: 520, r: 10 }, size, phone)).toEqual({ left: 55, top: 298 });
  });

  it("covers neither it, nor the toolbar, nor the list", () => {
    for (let x = 20; x < 360; x += 20)
      for (let y = 170; y < 580; y += 10) {
        if (y > 380 && y < 390) continue;
        expect(beside({ x, y, r: 10 }, size, phone).top).toBeGreaterThanOrEqual(160);
        if (y < 360 || y > 400) expect(covers({ x, y, r: 10 }, phone)).toBe(false);
      }
  });
});
