// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from "vitest";
import { evidenceRows, kindText } from "../../../src/pages/profile/findings-model";

describe("findings", () => {
  it("tell links with their messages, after the numbers", () => {
    expect(kindText("past_gateways")).toBe("past the gateways");
    expect(
      evidenceRows({
        messages: 1000,
        pairs: 2,
        links: [
          { process: "a to c", messages: 950, bytes: 9500 },
          { process: "c to a", messages: 50, bytes: 0 },
        ],
      }),
    ).toEqual([
      ["messages", "1,000"],
      ["pairs", "2"],
      ["a to c", "950 messages, 9,500 bytes"],
      ["c to a", "50 messages"],
    ]);
  });
});
