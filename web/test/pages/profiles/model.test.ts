// SPDX-License-Identifier: Apache-2.0
import { describe, expect, test } from "vitest";
import {
  costText,
  going,
  isActive,
  modules,
  over,
  placeText,
  type Profile,
  progress,
  stateText,
} from "../../../src/pages/profiles/model";

const profile = (more: Partial<Profile>): Profile => ({
  id: "1",
  kind: "sampling",
  on: { node: "n1@host" },
  nodes: ["n1@host"],
  who: "ann",
  at: 0,
  seconds: 10,
  mib: 32,
  modules: [],
  state: "running",
  began: 1000,
  ended_at: null,
  costs: [],
  dear: false,
  problems: [],
  why: null,
  stopped: false,
  bytes: 0,
  ...more,
});

describe("a profile in words", () => {
  test("is as far as its time is", () => {
    expect(progress(profile({}), 6000)).toBe(0.5);
    expect(going(profile({}), 6000)).toBe("5 s of 10 s left.");
    // Clocks differ, and the end comes late.
    expect(progress(profile({}), 0)).toBe(0);
    expect(progress(profile({}), 60_000)).toBe(1);
    expect(progress(profile({ state: "ended" }), 6000)).toBeNull();
    expect(progress(profile({ began: null }), 6000)).toBeNull();
    expect(going(profile({ began: null }), 6000)).toBe("It begins.");
  });

  test("tells where", () => {
    expect(placeText(profile({}))).toBe("n1@host");
    expect(placeText(profile({ on: { group: "red" }, nodes: ["a", "b"] }))).toBe(
      "group red (2 nodes)",
    );
    expect(placeText(profile({ on: { nodes: ["a", "b"] }, nodes: ["a", "b"] }))).toBe("2 nodes");
  });

  test("tells how it ended", () => {
    expect(stateText(profile({ state: "ended", stopped: true }))).toBe("stopped");
    expect(stateText(profile({ state: "running", stopped: true }))).toBe("running");
    expect(going(profile({ state: "failed", why: "no room left" }), 0)).toBe("No room left.");
    expect(over(profile({ state: "ended", ended_at: 3000, bytes: 2000 }))).toContain("2 s, ");
    expect(over(profile({}))).toBe("");
    for (const state of ["preparing", "ready", "running", "ending"] as const)
      expect(isActive(profile({ state }))).toBe(true);
    for (const state of ["ended", "failed", "lost"] as const)
      expect(isActive(profile({ state }))).toBe(false);
  });

  test("tells what it costs", () => {
    const cost = { node: "a", events_s: 1234.5, bytes_s: 2e6, cores: 0.05, full: true };
    expect(costText(cost)).toMatch(/^at least 1,23[45] events and .+ a second, 5.* of a core$/);
  });

  test("takes modules as people write them", () => {
    expect(modules(" lists, maps;lists\n sets ")).toEqual(["lists", "maps", "sets"]);
    expect(modules("")).toEqual([]);
  });
});
