// SPDX-License-Identifier: Apache-2.0
// Somebody opens a recording of four clients that ask one server: zooms, chooses the server, reads what is found and
// follows the critical path, at a desk and on a phone, light and dark.
import { unreadable } from "../readable.mjs";

const LOOKS = [
  { viewport: { width: 1440, height: 900 }, colorScheme: "light" },
  {
    viewport: { width: 390, height: 844 },
    colorScheme: "dark",
    hasTouch: true,
    isMobile: true,
    deviceScaleFactor: 2,
  },
];
const SERVER = "the_slow_server";

export default async function profile(stage) {
  const { link } = await stage.act("profile");
  const wrong = [];
  const grounds = new Set();
  for (const look of LOOKS) {
    const page = await stage.person(look);
    await page.goto(link);
    await played(stage, page, wrong);
    grounds.add(await page.evaluate(() => getComputedStyle(document.body).backgroundColor));
    const { colorScheme } = look;
    await page.emulateMedia({ colorScheme: colorScheme === "light" ? "dark" : "light" });
    await seen(page, `${look.viewport.width} pixels, the other theme`, wrong);
    grounds.add(await page.evaluate(() => getComputedStyle(document.body).backgroundColor));
  }
  if (grounds.size !== 2) wrong.push("light and dark look the same");
  stage.must(wrong.length === 0, wrong.join("\n"));
}

async function played(stage, page, wrong) {
  const tabs = page.getByRole("group", { name: "Shown below the time line" });
  const at = (name) => new URLSearchParams(new URL(page.url()).hash.split("?")[1] ?? "").get(name);

  // All of it at first; the server, which computes, is the first of the table.
  const server = page.getByTestId("profile-processes").getByRole("row").filter({ hasText: SERVER });
  await server.waitFor();
  await seen(page, "processes", wrong);

  // Zooming comes into the address, and the table follows.
  await page.locator(".profile-canvas").focus();
  for (let i = 0; i < 3; i += 1) await page.keyboard.press("+");
  await page.waitForURL(/from=\d+.*to=\d+|to=\d+.*from=\d+/);
  await page.getByText("Of the part that the time line shows.").waitFor();
  await page.keyboard.press("Home");
  await page.getByText("Of the whole recording.", { exact: true }).waitFor();

  // One process: who waits for it, and its messages as arrows.
  await server.getByText(SERVER).click();
  await page.getByTestId("profile-process").getByText("Is waited for by").waitFor();
  stage.must(/^\d+$/.test(at("process") ?? ""), "the chosen process is not in the address");
  await page
    .getByTestId("profile-arrows")
    .filter({ hasText: /messages of the chosen/ })
    .waitFor();
  const schedulers = page.getByTestId("profile-stays");
  await schedulers.getByRole("img", { name: /^On which of \d+ schedulers it was/ }).waitFor();
  await schedulers.getByRole("row").filter({ hasText: "scheduler 1" }).waitFor();

  // What is found, and where: the server alone could run, and four wait for it.
  await tabs.getByRole("button", { name: /^Findings/ }).click();
  const found = page.getByTestId("profile-findings").locator("details");
  const bottleneck = found.filter({ hasText: `${SERVER} works in` });
  await bottleneck.waitFor();
  await bottleneck.locator("dl").waitFor({ state: "attached" });
  await seen(page, "findings", wrong);
  await open(bottleneck);
  await bottleneck.getByRole("button", { name: "The whole run" }).click();
  await page.waitForURL(/lanes=\d+(%2C\d+){4}/);

  // The path: the server runs most of it, and a step leads to where it is.
  // Whatever ran last on the node may be another process: it is to lead to the server.
  await tabs.getByRole("button", { name: "Critical path" }).click();
  const path = page.getByTestId("profile-path");
  await path.getByRole("button", { name: "Lead to the chosen process" }).click();
  await path.getByText(/ in [\d,.\s]+ steps?/).waitFor();
  await path.getByRole("button", { name: SERVER }).first().waitFor();
  await seen(page, "critical path", wrong);
  await path.locator(".profile-steps tbody tr").first().getByRole("button").first().click();
  await page.waitForURL(/from=\d+/);

  // Who began whom: the way to the chosen one is open, and the four clients are alike.
  await tabs.getByRole("button", { name: "Processes" }).click();
  await page.locator(".profile-canvas").focus();
  await page.keyboard.press("Home");
  await page.getByText("Of the whole recording.", { exact: true }).waitFor();
  await server.getByText(SERVER).click();
  await page.getByTestId("profile-process").getByRole("heading", { name: SERVER }).waitFor();
  await page.getByRole("button", { name: "Tree" }).click();
  await page.getByTestId("profile-tree").getByText(SERVER).waitFor();
  // The system's own processes may have alike siblings, too.
  await page
    .getByTestId("profile-tree")
    .getByText(/(^|[^0-9])3 siblings alike/)
    .first()
    .waitFor();
  await seen(page, "tree", wrong);

  // Which functions: the one that the server runs, with its share.
  await tabs.getByRole("button", { name: "Calls" }).click();
  await page
    .getByTestId("profile-calls")
    .getByRole("button", { name: /compute\/0/ })
    .first()
    .waitFor();
  await seen(page, "calls", wrong);
}

/** A finding is shut but for the first one. */
async function open(details) {
  if (!(await details.evaluate((at) => at.open))) await details.locator("summary").click();
}

/** Nothing sticks out, and all texts can be read. */
async function seen(page, what, wrong) {
  const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  if (wide > 1) wrong.push(`${what}: ${wide} pixels wider than the screen`);
  const faint = await page.evaluate(unreadable);
  if (faint.length > 0) wrong.push(`${what}: hard to read: ${[...new Set(faint)].join("; ")}`);
}
