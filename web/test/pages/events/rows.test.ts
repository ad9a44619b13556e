// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from "vitest";
import { sorted } from "../../../src/lib/table-model";
import { incidents, isIncident } from "../../../src/model/incidents";
import type { ClusterEvent } from "../../../src/model/protocol";
import { kindText, rowId, rowsOf } from "../../../src/pages/events/rows";

const event = (id: number, kind: string, node: string): ClusterEvent => ({
  id,
  t: id,
  kind,
  level: "notice",
  text: `${kind} ${node}`,
  node,
});
const events = [
  event(1, "long_gc", "n1@h"),
  event(2, "node_down", "n9@h"),
  event(3, "long_gc", "n2@h"),
  event(4, "member_aside", "n9@h"),
  event(5, "undelivered", "n9@h"),
  event(6, "long_gc", "n3@h"),
];
const ids = (opened: number[], direction: "ascending" | "descending", passed = events) =>
  sorted(
    rowsOf(incidents(events), new Set(passed), new Set(opened), direction),
    (row) => row.place,
    direction,
  ).map(rowId);

describe("the rows of events", () => {
  it("have an incident in one line, at the time that it shows", () => {
    expect(ids([], "descending")).toEqual(["6", "3", "i2", "1"]);
    expect(ids([], "ascending")).toEqual(["1", "i2", "3", "6"]);
  });

  it("call the death of a member no split, and what happens to a new one no failure", () => {
    const row = rowsOf(incidents(events), new Set(events), new Set([]), "ascending").find(
      (one) => one.incident !== null,
    );
    expect(row?.incident?.cause).toBe("down");
    expect(kindText("component_split", row?.incident)).toBe("member lost");
    expect(kindText("component_split")).toBe("component split");
    expect(["component_merged", "member_aside", "long_gc"].map((kind) => kindText(kind))).toEqual([
      "members came in",
      "not waited for",
      "long gc",
    ]);
    const made = [event(1, "group_created", "n1@h"), event(2, "member_aside", "n1@h")];
    const [created] = incidents(made.map((one) => ({ ...one, group: "red" })));
    expect(isIncident(created) && kindText("member_aside", created)).toBe("brought up to date");
  });

  it("have its events below it when it is open, in either direction", () => {
    expect(ids([2], "descending")).toEqual(["6", "3", "i2", "p5", "p4", "p2", "1"]);
    expect(ids([2], "ascending")).toEqual(["1", "i2", "p2", "p4", "p5", "3", "6"]);
  });

  it("have an incident as long as one of its events passes the filters", () => {
    expect(ids([2], "descending", [events[4]])).toEqual(["i2", "p5"]);
    expect(ids([2], "descending", [events[0]])).toEqual(["1"]);
  });
});
