// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from "vitest";
import {
  evidenceRows,
  kindText,
  sentence,
} from "../../../../src/pages/profile/report/findings-model";

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

  it("tell functions of tables with their time and who calls them", () => {
    expect(sentence("functions of ets take 30 %")).toBe("Functions of ets take 30 %");
    expect(
      evidenceRows({
        tables_ns: 3_000_000,
        run_ns: 10_000_000,
        times: 40,
        places: [{ process: "ets:insert/2 in m:f/1", calls: 30, own_ns: 2_500_000 }],
      }),
    ).toEqual([
      ["in functions of ets", "3 ms"],
      ["running in all", "10 ms"],
      ["times", "40"],
      ["ets:insert/2 in m:f/1", "2.5 ms, 30 calls"],
    ]);
  });
});
