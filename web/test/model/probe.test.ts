// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from "vitest";
import { clusterSource, probeOf } from "../../src/model/probe";

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

describe("what the numbers of a cluster are of", () => {
  const node = (source: string | null, why: string | null = null) => ({ source, why });
  const probed = node("probe");
  const bare = node("stock", "no probe there: read with what OTP has");
  const taken = node("stock", "the probe tells other monitoring nodes ('m@h')");
  it("is said where it is not all probes", () => {
    expect(clusterSource("live", [probed, probed])).toBe(null);
    expect(clusterSource("live", [probed, bare])).toBe("mixed");
    expect(clusterSource("live", [bare, bare])).toBe("stock");
    expect(clusterSource("live", [probed, bare, taken])).toBe("elsewhere");
    expect(clusterSource("synthetic", [probed])).toBe("synthetic");
  });
  it("does not count nodes that were not read yet", () => {
    expect(clusterSource("live", [node("none"), probed])).toBe(null);
    expect(clusterSource("live", [node(null), bare])).toBe("stock");
    expect(clusterSource(undefined, [])).toBe(null);
  });
});
