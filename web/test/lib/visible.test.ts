// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from "vitest";
import { visible } from "../../src/lib/visible";

describe("what nobody sees", () => {
  it("is shown by its code", () => {
    expect(visible("a\u202egnp.exe")).toBe("a\\u{202e}gnp.exe");
    expect(visible("n1\u200b@h\u2066\u2069\u061c")).toBe("n1\\u{200b}@h\\u{2066}\\u{2069}\\u{61c}");
    expect(visible("\0\u001b[31m\u007f\u0085")).toBe("\\u{0}\\u{1b}[31m\\u{7f}\\u{85}");
    expect(visible("\ufeff\u00ad\u3164\u2028\ufe0f\u{e0041}")).toBe(
      "\\u{feff}\\u{ad}\\u{3164}\\u{2028}\\u{fe0f}\\u{e0041}",
    );
    expect(visible("\ud800x")).toBe("\\u{d800}x");
  });

  it("is not what people write", () => {
    for (const text of [
      "",
      "n1@10.0.0.1",
      "Groß · Größe → “4 %”",
      "שלום",
      "名前",
      "é",
      "🙂",
      "a\nb\tc",
    ])
      expect(visible(text)).toBe(text);
  });

  it("stays as it is when it is shown again", () => {
    const once = visible("\u202e");
    expect(visible(once)).toBe(once);
  });
});
