// SPDX-License-Identifier: Apache-2.0
// How smoothly the time line of a recording moves under the mouse, in frames a second:
//   toolchain/web --run node e2e/profile-frames.mjs LINK [SECONDS]
// LINK is what bin/sderl prof open prints. It is dragged to and fro at an eighth of the run, as fast as a hand does.
import { frameRate, launch } from "./browser.mjs";

const [link, seconds = "5"] = process.argv.slice(2);
if (link === undefined) {
  console.error("usage: toolchain/web --run node e2e/profile-frames.mjs LINK [SECONDS]");
  process.exit(2);
}
const browser = await launch();
const page = await browser.newPage({ viewport: { width: 1440, height: 900 } });
await page.goto(link);
await page.waitForFunction(() => document.querySelector(".profile-canvas")?.dataset.drawn, null, {
  timeout: 60_000,
  polling: "raf",
});
const canvas = page.locator(".profile-canvas");
const box = await canvas.boundingBox();
const [x, y] = [box.x + box.width * 0.6, box.y + box.height * 0.6];
await page.mouse.move(x, y);
for (let i = 0; i < 3; i += 1) await page.keyboard.press("+");
const counting = frameRate(page, Number(seconds));
const until = performance.now() + Number(seconds) * 1000;
await page.mouse.down();
for (let i = 0; performance.now() < until; i += 1) {
  await page.mouse.move(x + 300 * Math.sin(i / 15), y);
  // Hands do not tell more than screens show.
  await new Promise((done) => setTimeout(done, 12));
}
await page.mouse.up();
const { rate, longest } = await counting;
await browser.close();
console.log(`${rate.toFixed(0)} frames a second, the longest ${longest.toFixed(0)} ms`);
