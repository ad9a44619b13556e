// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from "vitest";
import type { Finding } from "../../src/model/protocol";
import { FOR_GOOD, open, parseTriage, pruned, stateOf } from "../../src/model/triage";
import { TriageStore } from "../../src/store/triage";

const finding = (id: string, since: number): Finding => ({
  id,
  kind: "long_queue",
  severity: "warning",
  since,
  t: since,
  where: {},
  text: "",
  evidence: [],
  remedy: "",
});

describe("what was said of a finding", () => {
  it("acknowledges it until it comes again", () => {
    const triage = { a: { acknowledged: 100 } };
    expect(stateOf(triage, finding("a", 100), 5000)).toBe("acknowledged");
    expect(stateOf(triage, finding("a", 200), 5000)).toBe("open");
    expect(stateOf(triage, finding("b", 100), 5000)).toBe("open");
  });

  it("mutes it for a time, also when it comes again", () => {
    const triage = { a: { muted: 1000 }, b: { muted: FOR_GOOD } };
    expect(stateOf(triage, finding("a", 1), 999)).toBe("muted");
    expect(stateOf(triage, finding("a", 1), 1000)).toBe("open");
    const found = [finding("a", 1), finding("b", 900)];
    expect(open(triage, found, 1000).map((one) => one.id)).toEqual(["a"]);
    expect(Object.keys(pruned(triage, 1000))).toEqual(["b"]);
  });

  it("is nothing for ids that objects have by themselves", () => {
    expect(stateOf({}, finding("constructor", 1), 1)).toBe("open");
  });

  it("is read from anything", () => {
    expect(parseTriage(null)).toEqual({});
    expect(parseTriage("{oh no")).toEqual({});
    expect(parseTriage("null")).toEqual({});
    expect(parseTriage('{"a":{"muted":5},"b":{"muted":"x"},"c":null}')).toEqual({
      a: { muted: 5 },
    });
  });
});

describe("the browser's triage", () => {
  it("is kept, and told of", () => {
    const kept = new Map<string, string>();
    const keep = {
      getItem: (key: string) => kept.get(key) ?? null,
      setItem: (key: string, text: string) => void kept.set(key, text),
    };
    let changes = 0;
    const one = new TriageStore(() => changes++, keep);
    one.acknowledge(finding("a", 7));
    one.mute(finding("b", 7), FOR_GOOD);
    one.mute(finding("c", 7), FOR_GOOD);
    one.reopen(finding("c", 7));
    expect(changes).toBe(4);
    const again = new TriageStore(() => undefined, keep);
    expect(["a", "b", "c"].map((id) => again.stateOf(finding(id, 7)))).toEqual([
      "acknowledged",
      "muted",
      "open",
    ]);
    expect(again.open([finding("a", 7), finding("c", 7)]).map(({ id }) => id)).toEqual(["c"]);
  });

  it("works without a place to keep it", () => {
    const refuses = {
      getItem: () => null,
      setItem: () => {
        throw new Error("full");
      },
    };
    const one = new TriageStore(() => undefined, refuses);
    one.acknowledge(finding("a", 7));
    expect(one.stateOf(finding("a", 7))).toBe("acknowledged");
  });
});
