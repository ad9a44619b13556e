// SPDX-License-Identifier: Apache-2.0
// Pictures for the documents, of a dashboard that runs:
//   toolchain/web --run node e2e/screenshots.mjs LINK [FOLDER [NAME ...]]
// LINK is the address with the token that bin/sderl demo and mon print; the folder is docs/img.
import { mkdir, writeFile } from "node:fs/promises";
import { resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { launch } from "./browser.mjs";
import { reduced } from "./palette.mjs";

const DESK = { viewport: { width: 1280, height: 800 }, deviceScaleFactor: 1.5 };
const PHONE = {
  viewport: { width: 390, height: 844 },
  deviceScaleFactor: 2,
  isMobile: true,
  hasTouch: true,
};
const SHOTS = {
  groups: { route: () => "#/groups", ...DESK },
  "groups-dark": { route: () => "#/groups", ...DESK, colorScheme: "dark" },
  // Of a large cluster, such as that of bin/sderl mon --synthetic: many colours, so fewer points.
  200: { route: () => "#/groups", ...DESK, deviceScaleFactor: 1.1 },
  matrix: { route: () => "#/matrix", ...DESK },
  node: { route: (busiest) => `#/node/${encodeURIComponent(busiest)}`, ...DESK },
  "node-dark": {
    route: (busiest) => `#/node/${encodeURIComponent(busiest)}`,
    ...DESK,
    colorScheme: "dark",
  },
  traffic: { route: () => "#/traffic?by=routed", ...DESK },
  names: { route: () => "#/names", ...DESK },
  events: { route: () => "#/events", ...DESK },
  alarms: { route: () => "#/alarms", ...DESK, deviceScaleFactor: 1.1 },
  // After a node was killed: the groups, and what followed from that.
  killed: { route: () => "#/groups", ...DESK, deviceScaleFactor: 1.1 },
  incident: { route: () => "#/events", opens: /is down/, ...DESK, deviceScaleFactor: 1.1 },
  findings: { route: () => "#/findings", ...DESK },
  "findings-dark": { route: () => "#/findings", ...DESK, colorScheme: "dark" },
  // Of nodes without a probe.
  "no-probe": { route: () => "#/groups", ...DESK, deviceScaleFactor: 1.1 },
  phone: { route: () => "#/groups", ...PHONE },
  "phone-node": {
    route: (busiest) => `#/node/${encodeURIComponent(busiest)}`,
    ...PHONE,
    colorScheme: "dark",
  },
};

const [link, folder = fileURLToPath(new URL("../../docs/img", import.meta.url)), ...wanted] =
  process.argv.slice(2);
if (link === undefined) {
  console.error("usage: toolchain/web --run node e2e/screenshots.mjs LINK [FOLDER [NAME ...]]");
  process.exit(2);
}
await mkdir(folder, { recursive: true });
const { origin, hash } = new URL(link);
const token = new URLSearchParams(hash.slice(1)).get("token");
const browser = await launch();

/** A gateway, if there is one: the node in most groups. */
let busiest = null;

async function shoot(name, { route, opens, ...options }) {
  const context = await browser.newContext({ reducedMotion: "no-preference", ...options });
  const page = await context.newPage();
  await page.goto(`${origin}/?token=${token}#/groups`);
  await page.waitForFunction(
    () => window.sderl?.nodes().length > 0 && window.sderl.frames > 3,
    null,
    { timeout: 60_000 },
  );
  busiest ??= await page.evaluate(() => {
    const up = window.sderl.nodes().filter((n) => n.status === "up");
    return up.reduce((a, b) => (b.groups.length > a.groups.length ? b : a)).name;
  });
  await page.evaluate((to) => (location.hash = to), route(busiest));
  // The picture comes to rest, and series have some points.
  const frames = await page.evaluate(() => window.sderl.frames);
  await page.waitForTimeout(frames === undefined ? 0 : 8000);
  if (opens !== undefined)
    await page
      .getByRole("row")
      .filter({ hasText: opens })
      .locator(".incident-toggle")
      .first()
      .click();
  const file = resolve(folder, `dashboard-${name}.png`);
  const png = reduced(await page.screenshot());
  await writeFile(file, png);
  console.log(`${file} ${Math.round(png.length / 1024)} KiB`);
  await context.close();
}

for (const [name, shot] of Object.entries(SHOTS)) {
  if (wanted.length === 0 || wanted.includes(name)) await shoot(name, shot);
}
await browser.close();
