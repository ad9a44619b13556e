// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from "vitest";
import { takeToken } from "../../src/store/token";

describe("the token in the address", () => {
  it("is taken out, the rest stays", () => {
    expect(takeToken("http://h:1/#token=abc")).toEqual({ token: "abc", clean: "http://h:1/" });
    expect(takeToken("http://h:1/?token=abc#/matrix")).toEqual({
      token: "abc",
      clean: "http://h:1/#/matrix",
    });
    expect(takeToken("http://h:1/#/node/n%401?t=5&token=a%2Bb")).toEqual({
      token: "a+b",
      clean: "http://h:1/#/node/n%401?t=5",
    });
  });

  it("leaves an address without one alone", () => {
    expect(takeToken("http://h:1/#/groups?t=5")).toEqual({ token: null, clean: null });
  });
});
