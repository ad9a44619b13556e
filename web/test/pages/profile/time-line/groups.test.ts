// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from "vitest";
import type { Node, Operation } from "../../../../src/pages/profile/answers";
import {
  applied,
  atBegin,
  callText,
  endOf,
  type Groups,
  inOrder,
  isOfNames,
  nextStep,
  operationText,
  outcomeText,
  Replay,
  shown,
} from "../../../../src/pages/profile/time-line/groups-model";
import { aNode, anOperation } from "./recorded";

const operation = (name: string, more: Partial<Operation> = {}): Operation =>
  anOperation({ operation: `s_group:${name}`, ...more });
const made = (nodes: (string | null)[], more: Partial<Operation> = {}): Operation =>
  operation("new_s_group/2", { nodes, got_group: "shop", got_nodes: nodes, ...more });
const after = (...operations: Operation[]): Groups => operations.reduce<Groups>(applied, new Map());
const members = (groups: Groups, group = "shop") => groups.get(group)?.members;

describe("what operations make of groups", () => {
  it("knows all of a group that was made", () => {
    const groups = after(made(["b@h", "a@h"]));
    expect(members(groups)).toEqual(["a@h", "b@h"]);
    expect(groups.get("shop")?.mayHaveMore).toBe(false);
    expect(groups.get("shop")?.mayHaveNames).toBe(false);
  });

  it("makes none of no nodes", () => {
    expect(after(made([])).size).toBe(0);
  });

  it("has those that joined, not those that were asked", () => {
    const groups = after(made(["a@h", "b@h"], { got_nodes: ["a@h"] }));
    expect(members(groups)).toEqual(["a@h"]);
  });

  it("adds and removes", () => {
    const groups = after(
      made(["a@h", "b@h"]),
      operation("add_nodes/2", { nodes: ["c@h", "d@h"], got_nodes: ["c@h"], got_group: "shop" }),
      operation("remove_nodes/2", { nodes: ["b@h", "nobody@h"] }),
    );
    expect(members(groups)).toEqual(["a@h", "c@h"]);
    expect(groups.get("shop")?.mayHaveMore).toBe(false);
  });

  it("knows a part of a group that was there before", () => {
    const groups = after(
      operation("add_nodes/2", { nodes: ["c@h"], got_nodes: ["c@h"], got_group: "shop" }),
    );
    expect(members(groups)).toEqual(["a@h", "c@h"]);
    expect(groups.get("shop")?.mayHaveMore).toBe(true);
    expect(groups.get("shop")?.mayHaveNames).toBe(true);
  });

  it("knows nothing by an addition of nobody", () => {
    const nobody = operation("add_nodes/2", { nodes: [], got_nodes: [], got_group: "shop" });
    expect(after(nobody).size).toBe(0);
  });

  it("has all members after one has entered, and none after the last has left", () => {
    const entered = operation("enter/2", {
      nodes: ["b@h"],
      got_group: "shop",
      got_nodes: ["a@h", "b@h"],
    });
    expect(members(after(entered))).toEqual(["a@h", "b@h"]);
    expect(after(entered).get("shop")?.mayHaveMore).toBe(false);
    const left = after(entered, operation("leave/1"));
    expect(members(left)).toEqual(["b@h"]);
    expect(after(made(["a@h"]), operation("leave/1")).size).toBe(0);
    // Of this one others may be there.
    expect(members(after(operation("leave/1")))).toEqual([]);
  });

  it("forgets a deleted group, and makes it anew", () => {
    const gone = [made(["a@h", "b@h"]), operation("delete_s_group/1")] as const;
    expect(after(...gone).size).toBe(0);
    expect(members(after(...gone, made(["a@h"])))).toEqual(["a@h"]);
  });

  it("leaves survivors of a majority", () => {
    const groups = after(
      made(["a@h", "b@h", "c@h"]),
      operation("recover_majority/2", { nodes: ["a@h", "b@h"] }),
    );
    expect(members(groups)).toEqual(["a@h", "b@h"]);
  });

  it("counts names", () => {
    const named = (name: string, verb = "register_name/4") =>
      operation(verb, { name, of_process: "<0.9.0>" });
    const groups = after(
      made(["a@h"]),
      named("x"),
      named("y", "register_name/2"),
      named("y", "re_register_name/3"),
      operation("unregister_name/2", { name: "x" }),
      operation("unregister_name/2", { name: "of before" }),
    );
    expect([...(groups.get("shop")?.names ?? [])]).toEqual([["y", "<0.9.0>"]]);
  });

  it("does nothing by what failed or did not end", () => {
    const before = after(made(["a@h", "b@h"]));
    for (const one of [
      operation("delete_s_group/1", { ok: false, text: "{error,no_majority}" }),
      operation("delete_s_group/1", { ok: null, took: null, text: "" }),
      operation("delete_s_group/1", { group: null }),
      operation("something_new/1"),
    ])
      expect(applied(before, one)).toBe(before);
  });

  it("says where more nodes are than are kept", () => {
    const groups = after(made(["a@h", null]));
    expect(members(groups)).toEqual(["a@h"]);
    expect(groups.get("shop")?.mayHaveMore).toBe(true);
  });
});

describe("the begin", () => {
  const node = (name: string, groups: string[]): Node => aNode({ node: name, groups });

  it("has what the recorded nodes were in, and says that there may be more", () => {
    const groups = atBegin([node("b@h", ["shop"]), node("a@h", ["shop", "till"])]);
    expect(members(groups)).toEqual(["a@h", "b@h"]);
    expect(members(groups, "till")).toEqual(["a@h"]);
    expect([...groups.values()].every(({ mayHaveMore }) => mayHaveMore)).toBe(true);
    expect(atBegin([]).size).toBe(0);
  });
});

describe("the replay", () => {
  // Pseudo-random, the same each time.
  const many = (count: number): Operation[] => {
    let seed = 7;
    const next = (n: number) => {
      seed = (seed * 1_103_515_245 + 12_345) % 2 ** 31;
      return Math.floor((seed / 2 ** 31) * n);
    };
    const pick = <T>(list: readonly T[]): T => list[next(list.length)] as T;
    return Array.from({ length: count }, (_, i): Operation => {
      const group = pick(["shop", "till", "store"]);
      const nodes = ["a@h", "b@h", "c@h"].filter(() => next(2) === 1);
      return operation(
        pick(["new_s_group/2", "add_nodes/2", "remove_nodes/2", "leave/1", "register_name/3"]),
        {
          at: 10 * i + next(10),
          took: pick([null, 0, 3, 400]),
          ok: pick([true, true, true, false]),
          node: pick(["a@h", "b@h"]),
          group,
          nodes,
          got_group: group,
          got_nodes: nodes,
          name: pick(["x", "y", "z"]),
          of_process: "<0.1.0>",
        },
      );
    });
  };

  it("is at each step what one operation after the other makes, in whatever order one goes", () => {
    const operations = many(300);
    const begin: Groups = new Map();
    const replay = new Replay(begin, operations);
    const steps = inOrder(operations);
    const plain: Groups[] = [begin];
    for (const one of steps) plain.push(applied(plain.at(-1) as Groups, one));
    for (const at of [0, 1, 299, 64, 63, 65, 128, 300, 2, 200])
      expect(replay.after(at)).toEqual(plain[at]);
    expect(replay.after(-1)).toBe(begin);
    expect(replay.after(1000)).toEqual(plain[300]);
  });

  it("orders by when operations took effect, and finds the step of a moment", () => {
    const slow = operation("add_nodes/2", { at: 0, took: 100 });
    const quick = operation("leave/1", { at: 10, took: 5 });
    const replay = new Replay(new Map(), [slow, quick]);
    expect(replay.steps).toEqual([quick, slow]);
    expect([0, 15, 99, 100, 1000].map((t) => replay.countAt(t))).toEqual([0, 1, 1, 2, 2]);
    expect(endOf(operation("leave/1", { at: 7, took: null }))).toBe(7);
  });

  it("goes from one change of members to the next, and to the ends", () => {
    const is = (step: number) => step === 3 || step === 7;
    expect([0, 1, 3, 6, 7, 9].map((step) => nextStep(step, 1, 10, is))).toEqual([
      3, 3, 7, 7, 10, 10,
    ]);
    expect([10, 8, 7, 3, 2, 0].map((step) => nextStep(step, -1, 10, is))).toEqual([
      7, 7, 3, 0, 0, 0,
    ]);
    const verbs = ["register_name/3", "re_register_name/3", "unregister_name_external/2"];
    expect(verbs.every((verb) => isOfNames(operation(verb)))).toBe(true);
    expect(isOfNames(operation("leave/1"))).toBe(false);
  });

  it("tells what a step changed", () => {
    const before = after(made(["a@h", "b@h"]));
    const add = operation("add_nodes/2", { nodes: ["c@h"], got_nodes: ["c@h"], got_group: "shop" });
    const now = after(made(["a@h", "b@h"]), operation("remove_nodes/2", { nodes: ["b@h"] }), add);
    expect(shown(before, now)).toMatchObject([
      {
        group: "shop",
        change: "stays",
        members: [
          { node: "a@h", change: "stays" },
          { node: "b@h", change: "left" },
          { node: "c@h", change: "came" },
        ],
      },
    ]);
    expect(shown(new Map(), before)[0]?.change).toBe("came");
    expect(shown(before, new Map())[0]?.change).toBe("left");
  });
});

describe("words", () => {
  it("tells an operation with its end", () => {
    const one = operation("add_nodes/2", { arguments: "shop, [b@h]", took: 3_000_000 });
    expect(callText(one)).toBe("add_nodes(shop, [b@h])");
    expect(operationText(one)).toBe("add_nodes(shop, [b@h]) by <0.5.0>, took 3 ms, ok");
    expect(outcomeText({ ...one, ok: false, text: "{error,no_majority}" })).toBe(
      "took 3 ms, nothing done: {error,no_majority}",
    );
    expect(outcomeText({ ...one, took: null })).toMatch(/not known what it did/);
    expect(callText({ ...one, arguments: "" })).toBe("add_nodes(?)");
  });
});
