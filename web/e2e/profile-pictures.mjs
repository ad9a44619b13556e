// SPDX-License-Identifier: Apache-2.0
// Pictures of a recording for docs/profiling.md:
//   toolchain/web --run node e2e/profile-pictures.mjs LINK [FOLDER]
// LINK is what bin/sderl prof open prints; the folder is docs/img. The recording is one with findings.
import { writeFile } from "node:fs/promises";
import { resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { launch } from "./browser.mjs";
import { reduced } from "./palette.mjs";

const [link, folder = fileURLToPath(new URL("../../docs/img", import.meta.url))] =
  process.argv.slice(2);
if (link === undefined) {
  console.error("usage: toolchain/web --run node e2e/profile-pictures.mjs LINK [FOLDER]");
  process.exit(2);
}
const browser = await launch();
const context = await browser.newContext({
  viewport: { width: 1280, height: 1000 },
  deviceScaleFactor: 1.5,
});
const page = await context.newPage();
await page.goto(link);
const tabs = page.getByRole("group", { name: "Shown below the time line" });

async function shoot(name) {
  const file = resolve(folder, `profile-${name}.png`);
  const png = reduced(await page.screenshot());
  await writeFile(file, png);
  console.log(`${file} ${Math.round(png.length / 1024)} KiB`);
}

await tabs.getByRole("button", { name: /^Findings/ }).click();
const first = page.getByTestId("profile-findings").locator("details").first();
await first.getByRole("button", { name: "The whole run" }).click();
await page.waitForURL(/lanes=/);
await page.getByRole("button", { name: "Close" }).click();
await page.getByTestId("profile-process").waitFor({ state: "hidden" });
await page.waitForLoadState("networkidle");
await shoot("findings");

await tabs.getByRole("button", { name: "Critical path" }).click();
const path = page.getByTestId("profile-path");
await path.locator(".profile-steps tbody tr button").nth(4).click();
await page.waitForURL(/from=\d+/);
for (let i = 0; i < 3; i += 1) await page.keyboard.press("-");
await page.getByTestId("profile-arrows").filter({ hasText: /\d/ }).waitFor();
await page.getByRole("button", { name: "Close" }).click();
await page.waitForLoadState("networkidle");
await shoot("path");
await browser.close();
