// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from "vitest";
import type { LogEvent, LogInfo } from "../../../src/model/protocol";
import {
  asked,
  kept,
  leftOut,
  newer,
  newest,
  NOTHING,
  older,
  severity,
} from "../../../src/pages/log/model";

const log: LogInfo = {
  events: { error: 2, notice: 3 },
  lost: [
    { reason: "rate", level: "error", events: 4 },
    { reason: "rate", level: "info", events: 1 },
    { reason: "relay", level: "unknown", events: 7 },
  ],
  place: "memory",
  problem: null,
  range: null,
  last: 9,
  bytes: 1,
};
const event = (id: number): LogEvent => ({
  id,
  t: id,
  node_t: id,
  level: "error",
  node: "a@h",
  groups: [],
  mfa: "",
  pid: "",
  text: "",
  lost: 0,
});
const page = (from: number, to: number, next: number | null) => ({
  events: Array.from({ length: from - to + 1 }, (_, i) => event(from - i)),
  next,
  log,
});
const ids = ({ events }: { events: readonly LogEvent[] }) => events.map(({ id }) => id);

describe("the events of the page", () => {
  it("grow at both ends", () => {
    const first = older(NOTHING, page(9, 7, 7));
    const then = newer(first, page(12, 10, null));
    expect(ids(older(then, page(6, 5, null)))).toEqual([12, 11, 10, 9, 8, 7, 6, 5]);
    expect(then.next).toBe(7);
    expect(newest(then, 3)).toBe(12);
    expect(newest(NOTHING, 3)).toBe(3);
    expect(newer(first, page(0, 1, null))).toBe(first);
  });

  it("begin anew where some would be missing", () => {
    const shown = newer(older(NOTHING, page(9, 7, 7)), page(40, 30, 30));
    expect(ids(shown)).toEqual(ids(page(40, 30, 30)));
    expect(shown.next).toBe(30);
  });

  it("are bounded", () => {
    const shown = newer(older(NOTHING, page(6000, 2001, 2001)), page(8000, 6001, null));
    expect(shown.events.length).toBe(5000);
    expect(shown.next).toBe(3001);
  });
});

describe("words", () => {
  it("of what is left out and kept", () => {
    expect(leftOut(log, String)).toBe(
      "5 left out: more than a node may tell in a second; 7 left out: lost between monitoring nodes",
    );
    expect(leftOut({ ...log, lost: [] }, String)).toBe("");
    expect(kept(log)).toBe(5);
  });

  it("of a filter, and the order of levels", () => {
    const none = { text: "", level: "", node: "", group: "", module: "", until: null } as const;
    expect(asked(none)).toEqual({});
    expect(asked({ ...none, text: "a", until: 5 })).toEqual({ text: "a", to: 5 });
    expect(severity("emergency")).toBe(0);
    expect(severity("debug")).toBe(7);
  });
});
