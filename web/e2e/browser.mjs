// SPDX-License-Identifier: Apache-2.0
// A browser that is driven line by line: a line of JSON {"op": ..., ...} comes on stdin and one goes
// back on stdout for each, {"ok": true, ...} or {"ok": false, "error": text}. When stdin ends the
// browser does too.
//
// The program is $SDERL_BROWSER, or what toolchain/browser finds. Nothing is downloaded.
import { execFileSync } from "node:child_process";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";

export async function launch(more = []) {
  const executablePath =
    process.env.SDERL_BROWSER ??
    execFileSync(fileURLToPath(new URL("../../toolchain/browser", import.meta.url)), {
      encoding: "utf8",
    }).trim();
  return chromium.launch({
    executablePath,
    headless: true,
    // A browser that nobody sees is not to save its strength.
    args: [
      "--disable-background-timer-throttling",
      "--disable-renderer-backgrounding",
      "--disable-backgrounding-occluded-windows",
      "--force-color-profile=srgb",
      ...more,
    ],
  });
}

/** Answers each line with what `ops[op]` gives, one after the other, until stdin ends. */
export async function serve(ops, end = async () => {}) {
  const lines = createInterface({ input: process.stdin, crlfDelay: Infinity });
  try {
    for await (const line of lines) {
      if (line.trim() === "") continue;
      let answer;
      try {
        const { op, ...args } = JSON.parse(line);
        if (!Object.hasOwn(ops, op)) throw new Error(`there is no step ${op}`);
        answer = { ok: true, ...(await ops[op](args)) };
      } catch (error) {
        answer = { ok: false, error: String(error?.message ?? error) };
      }
      process.stdout.write(`${JSON.stringify(answer)}\n`);
    }
  } finally {
    await end();
  }
}

/** Waits until the page has drawn the cluster. */
export async function drawn(page, timeout = 20_000) {
  await page.waitForFunction(
    () =>
      window.sderl !== undefined &&
      window.sderl.firstPaintMs > 0 &&
      window.sderl.nodes().length > 0,
    null,
    { timeout },
  );
}

/** Frames a second of a page for so long, and the longest, ms. */
export const frameRate = (page, seconds) =>
  page.evaluate(
    (ms) =>
      new Promise((done) => {
        const start = performance.now();
        let [frames, last, longest] = [0, start, 0];
        const tick = (now) => {
          frames += 1;
          longest = Math.max(longest, now - last);
          last = now;
          if (now - start < ms) requestAnimationFrame(tick);
          else done({ rate: (1000 * frames) / (now - start), longest });
        };
        requestAnimationFrame(tick);
      }),
    1000 * seconds,
  );
