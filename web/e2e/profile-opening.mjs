// SPDX-License-Identifier: Apache-2.0
// How long the page of a recording takes to open, from the address to the drawn lanes, in milliseconds:
//   toolchain/web --run node e2e/profile-opening.mjs LINK [TIMES]
// LINK is what bin/sderl prof open prints. Each time is that of a browser that has nothing kept.
import { launch } from "./browser.mjs";

const [link, times = "11"] = process.argv.slice(2);
if (link === undefined) {
  console.error("usage: toolchain/web --run node e2e/profile-opening.mjs LINK [TIMES]");
  process.exit(2);
}
const browser = await launch();
const taken = [];
for (let i = 0; i < Number(times); i += 1) {
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 } });
  const page = await context.newPage();
  await page.goto(link);
  const drawn = await page.waitForFunction(
    () => document.querySelector(".profile-canvas")?.dataset.drawn,
    null,
    { timeout: 60_000, polling: "raf" },
  );
  taken.push(Number(await drawn.jsonValue()));
  await context.close();
}
await browser.close();
taken.sort((a, b) => a - b);
const at = (share) => Math.round(taken[Math.floor(share * (taken.length - 1))]);
console.log(`opened ${taken.length} times: median ${at(0.5)} ms, ${at(0)} to ${at(1)} ms`);
