// SPDX-License-Identifier: Apache-2.0
import { describe, expect, test } from "vitest";
import {
  type Action,
  allowed,
  args,
  columns,
  next,
  type Param,
  parts,
  shown,
  title,
} from "../../src/pages/actions/model";
import { family, where } from "../../src/model/places";
import { type Entry, lacks, where as places, who, words } from "../../src/pages/audit/model";

const param = (name: string, more: Partial<Param>): Param => ({
  name,
  about: "",
  required: false,
  default: null,
  type: "text",
  ...more,
});

describe("what is given to an action", () => {
  const params = [
    param("pid", { required: true }),
    param("limit", { type: "whole", min: 1, max: 200 }),
    param("force", { type: "flag" }),
  ];

  test("what is left empty is left out", () => {
    expect(args(params, { pid: "<0.1.0>", limit: "", force: false })).toEqual({
      args: { pid: "<0.1.0>" },
    });
    expect(args(params, { pid: "init", limit: "5", force: true })).toEqual({
      args: { pid: "init", limit: 5, force: true },
    });
  });

  test("what is wrong is said, and where", () => {
    expect(args(params, { pid: "" })).toEqual({ wrong: "Pid is missing.", name: "pid" });
    for (const limit of ["0", "201", "1.5", "x"])
      expect(args(params, { pid: "init", limit })).toMatchObject({ name: "limit" });
  });

  test("a role may do what needs less", () => {
    const action = (role: Action["role"]) => ({ role }) as Action;
    expect(allowed("admin", action("operator"))).toBe(true);
    expect(allowed("viewer", action("viewer"))).toBe(true);
    expect(allowed("viewer", action("operator"))).toBe(false);
  });

  test("where", () => {
    expect(where("node:a@h")).toEqual({ node: "a@h" });
    expect(where("group:{a:b}")).toEqual({ group: "{a:b}" });
    expect(where("")).toBe(null);
    expect(where("all:x")).toBe(null);
    expect([family("web12@h"), family("web-12@h"), family("web"), family("a1b@h")]).toEqual([
      "web",
      "web",
      "web",
      "a1b",
    ]);
    expect([title("garbage_collect"), title("timeout_ms")]).toEqual([
      "Garbage collect",
      "Timeout (ms)",
    ]);
  });
});

describe("what nodes answer", () => {
  test("lists of objects are tables, the rest are facts", () => {
    const { facts, rows } = parts({ total: 2, processes: [{ pid: "a" }], links: ["x"], none: [] });
    expect(facts.map(([key]) => key)).toEqual(["links", "none", "total"]);
    expect(rows).toEqual([["processes", [{ pid: "a" }]]]);
    expect(parts(null)).toEqual({ facts: [], rows: [] });
    expect(parts(7).facts).toEqual([["result", 7]]);
    expect(columns([{ b: 1, pid: "x" }, { a: 1 }])).toEqual(["pid", "a", "b"]);
  });

  test("values", () => {
    expect(shown("memory", 1_500_000)).toBe("1.43 MiB");
    expect(shown("reductions", 1500)).toBe("1,500");
    expect(shown("links", [])).toBe("none");
    expect(shown("x", { a: 1 })).toBe('{"a":1}');
    expect(shown("label", "")).toBe("–");
  });

  test("a row leads on", () => {
    expect(next("processes", { pid: "<0.1.0>" })).toEqual(["process", "pid", "<0.1.0>"]);
    expect(next("changes", { change: "r" })).toEqual(["undo_environment", "change", "r"]);
    expect(next("processes", {})).toBe(null);
  });
});

test("an entry of the audit log in words", () => {
  const entry: Entry = {
    seq: 1,
    at: "2026-11-27T08:00:00.000Z",
    request: "r",
    who: { kind: "token", name: "anna", role: "operator", from: "127.0.0.1" },
    what: "action.log_level",
    where: ["a@h", "b@h"],
    args: { level: "debug", n: 1 },
    result: "ok",
    detail: "2 of 2 nodes done",
    ms: 3,
  };
  expect(words(entry)).toBe("log_level level=debug n=1 (2 of 2 nodes done)");
  expect(who(entry)).toBe("anna as operator from 127.0.0.1");
  const said = { ...entry, who: { ...entry.who, token: "main" } };
  expect(who(said)).toBe("anna as operator with the token main from 127.0.0.1");
  expect(places(entry)).toBe("a@h and 1 more");
  expect(places({ ...entry, where: ["a@h"], where_total: 300 })).toBe("a@h and 299 more");
  expect(places({ ...entry, where: [] })).toBe("");
  const whole = {
    entries: [],
    more: false,
    oldest: 1,
    damaged: 0,
    lost: 0,
    waiting: 0,
    unread: null,
  };
  expect(lacks({ ...whole, problem: null })).toBe("");
  expect(lacks({ ...whole, problem: null, unread: "the disk does not answer" })).toBe(
    "The disk does not answer.",
  );
  expect(lacks({ ...whole, lost: 3, problem: "no space left" })).toContain("3 entries were lost");
  expect(lacks({ ...whole, problem: null, lost: 1, waiting: 1, damaged: 1 })).toBe(
    "1 entry waits in memory. 1 entry was lost since this monitoring node began. 1 line of its files is no entry.",
  );
});
