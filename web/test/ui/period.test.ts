// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from "vitest";
import type { Ctx } from "../../src/ui/ctx";
import { periodOf, refreshMs, span } from "../../src/ui/period";

const ctx = (page: string, window: string | undefined, archive?: boolean): Ctx =>
  ({
    route: { page, query: window === undefined ? {} : { window } },
    store: { hello: { archive }, time: { mode: "live", t: null }, live: { frame: { t: 9e12 } } },
  }) as unknown as Ctx;

describe("the period of charts", () => {
  it("is as asked where something is kept of it", () => {
    expect(periodOf(ctx("node", undefined))).toBe(300);
    expect(periodOf(ctx("node", "86400"))).toBe(86400);
    expect(periodOf(ctx("node", "604800"))).toBe(300);
    expect(periodOf(ctx("node", "604800", true))).toBe(604800);
    expect(periodOf(ctx("node", "2592000", true))).toBe(2592000);
    expect(periodOf(ctx("node", "7", true))).toBe(300);
  });

  it("is an hour at most for a table of traffic", () => {
    expect(periodOf(ctx("traffic", "3600", true))).toBe(3600);
    expect(periodOf(ctx("traffic", "86400", true))).toBe(60);
  });

  it("is shown up to the newest frame, and asked for again within a minute", () => {
    expect(span(ctx("node", "86400"))).toEqual({ from: 9e12 - 86400000, to: 9e12 });
    expect(refreshMs(ctx("node", "60"))).toBe(2000);
    expect(refreshMs(ctx("node", "2592000", true))).toBe(60000);
  });
});
