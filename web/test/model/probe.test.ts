// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from "vitest";
import { probeOf } from "../../src/model/probe";

describe("a node's probe", () => {
  const of = (why: string | null) => probeOf({ source: "stock", why });
  it("is told from one that is not there", () => {
    expect(probeOf({ source: "probe", why: null })).toBe("tells");
    expect(of("the probe tells other monitoring nodes ('m@h'); read with what OTP has")).toBe(
      "elsewhere",
    );
    expect(of("stock reading was asked for")).toBe("unwanted");
    expect(of("the probe cannot be loaded there: sticky_directory")).toBe("failed");
    expect(of("no probe there: read with what OTP has")).toBe("absent");
    expect(of(null)).toBe("absent");
  });
});
