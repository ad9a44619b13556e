// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from "vitest";
import { commonQuery, formatRoute, parseRoute } from "../../src/ui/router";

describe("router", () => {
  it("gives back what it made, for any name", () => {
    for (const arg of ["g1", '{pool,"a/b?c",1}', "n1@10.0.0.1", "ünï#cø%dé", "a//b"]) {
      const hash = formatRoute({ page: "groups", arg, query: { t: "12", q: "x&y=z" } });
      expect(parseRoute(hash)).toEqual({ page: "groups", arg, query: { t: "12", q: "x&y=z" } });
    }
  });

  it("opens the groups for what it does not know", () => {
    expect(parseRoute("").page).toBe("groups");
    expect(parseRoute("#/nonsense/x")).toEqual({ page: "groups", arg: "x", query: {} });
    expect(parseRoute("#/node/%zz").arg).toBe("%zz");
  });

  it("leaves empty fields out and keeps the common ones", () => {
    expect(formatRoute({ page: "traffic", query: { by: "link", q: "" } })).toBe(
      "#/traffic?by=link",
    );
    expect(commonQuery({ t: "1", theme: "dark", by: "link" })).toEqual({ t: "1", theme: "dark" });
  });
});
