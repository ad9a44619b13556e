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
  await page.mouse.move(0, 0);
  await page.evaluate(() => document.querySelector(".page-profile").scrollTo(0, 0));
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

// A part in the middle, near enough for each message; the first lane is that of the process that ran longest.
const { origin, hash } = new URL(link);
const token = new URLSearchParams(hash.slice(hash.indexOf("token="))).get("token");
const about = await fetch(`${origin}/api/v1/profile`, {
  headers: { authorization: `Bearer ${token}` },
});
const from = Math.round(0.52 * (await about.json()).duration);
const lanes = new URLSearchParams(new URL(page.url()).hash.split("?")[1]).get("lanes");
await page.goto("about:blank");
await page.goto(
  `${origin}/?token=${token}#/profile?tab=path&lanes=${lanes}&process=${lanes.split(",")[0]}&from=${from}&to=${from + 800_000}`,
);
await page.getByTestId("profile-path").locator(".profile-steps tbody tr").first().waitFor();
await page
  .getByTestId("profile-arrows")
  .filter({ hasText: /of the chosen/ })
  .waitFor();
await page.waitForLoadState("networkidle");
await shoot("path");
await browser.close();
