// SPDX-License-Identifier: Apache-2.0
// Somebody opens a recording of four clients that ask one server: zooms, chooses the server, reads what is found and
// follows the critical path, at a desk and on a phone, light and dark.
import { faults, playedWithLooks, seen } from "../readable.mjs";

const SERVER = "the_slow_server";

export default async function profile(stage) {
  const { link } = await stage.act("profile");
  await playedWithLooks(stage, link, played);
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
  // The path before it looks alike: a click while the new one is drawn would be lost.
  const led = page.waitForResponse((answer) => /profile\/path\?.*process=/.test(answer.url()));
  await path.getByRole("button", { name: "Lead to the chosen process" }).click();
  await led;
  await page.locator("[data-testid=profile-path]:not([aria-busy])").waitFor();
  await path.getByText(/ in [\d,.\s]+ steps?/).waitFor();
  await path.getByRole("button", { name: SERVER }).first().waitFor();
  await seen(page, "critical path", wrong);
  await path.locator(".profile-steps tbody tr").first().getByRole("button").first().click();
  await page.waitForURL(/from=\d+/);

  await exchanged(stage, page, at, wrong);

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

  // Where processes wait: the clients, for the server; then the server alone.
  await tabs.getByRole("button", { name: "Waits" }).click();
  const waits = page.getByTestId("profile-waits");
  const asking = waits.getByRole("row").filter({ hasText: "sderl_web_browser_SUITE:ask/2" });
  await asking.waitFor();
  await asking.locator(".num").first().click();
  await page.getByTestId("profile-waiters").getByRole("button", { name: SERVER }).waitFor();
  await seen(page, "waits", wrong);
  await waits.getByRole("button", { name: "Only of the chosen process" }).click();
  await waits.getByText(`of ${SERVER} alone, in the whole recording`).waitFor();
  await asking.waitFor({ state: "hidden" });
  await waits.getByRole("button", { name: "Of all processes" }).click();
  await asking.waitFor();

  // Which functions: the one that the server runs, with its share.
  await tabs.getByRole("button", { name: "Calls" }).click();
  await page
    .getByTestId("profile-calls")
    .getByRole("button", { name: /compute\/0/ })
    .first()
    .waitFor();
  // Who calls it, and what that calls.
  const graph = page.getByTestId("profile-callers");
  const around = page.getByTestId("profile-around");
  const compute = graph.getByRole("row").filter({ hasText: "compute/0" });
  await compute.locator(".num").first().click();
  await around.getByRole("heading", { name: "sderl_web_browser_SUITE:compute/0" }).waitFor();
  stage.must(/^\d+$/.test(at("function") ?? ""), "the chosen function is not in the address");
  await around.locator(".calls-callers li").filter({ hasText: "200 ×" }).waitFor();
  wrong.push(...(await faults(page, "calls")));
  await around
    .locator(".calls-callers")
    .getByRole("button", { name: /serve_slowly\/0/ })
    .click();
  await around.getByRole("heading", { name: "sderl_web_browser_SUITE:serve_slowly/0" }).waitFor();
  await around
    .locator(".calls-callees")
    .getByRole("button", { name: /compute\/0/ })
    .waitFor();
  // Its source, as the module that was recorded says where it is.
  await around.getByRole("button", { name: "Source" }).click();
  const source = page.getByRole("dialog", { name: "sderl_web_browser_SUITE:serve_slowly/0" });
  await source.getByText("serve_slowly() ->", { exact: true }).waitFor();
  await source.getByText("The version that was recorded.").waitFor();
  await seen(page, "source", wrong);
  await source.getByRole("button", { name: "Close" }).click();
  // Those of the server alone have none of the clients' functions.
  const asks = graph.getByRole("row").filter({ hasText: "ask/2" });
  await asks.waitFor();
  await page
    .getByTestId("profile-calls")
    .getByRole("button", { name: "Only of the chosen process" })
    .click();
  await graph.getByText(`of ${SERVER} alone, in the whole recording`).waitFor();
  await asks.waitFor({ state: "hidden" });
  // Some have less than so much of the time.
  await graph.getByRole("spinbutton").fill("50");
  await compute.waitFor();
  await graph
    .getByText(/less time/)
    .first()
    .waitFor();
}

/** Messages as a graph, and the report. */
async function exchanged(stage, page, at, wrong) {
  const tabs = page.getByRole("group", { name: "Shown below the time line" });
  // Who sends to whom: the server is in the middle; the keys go to it, and show what it exchanges messages with.
  await page.locator(".profile-canvas").focus();
  await page.keyboard.press("Home");
  await tabs.getByRole("button", { name: "Messages" }).click();
  const messages = page.getByTestId("profile-messages");
  const graph = messages.getByTestId("profile-graph");
  await graph.getByRole("button", { name: new RegExp(`^${SERVER}: messages sent 200 `) }).waitFor();
  await seen(page, "messages", wrong);
  await messages.getByLabel("At least so many messages").fill("50");
  await page.waitForURL(/least=50/);
  await messages.getByText(/the filters leave [\d,]+ pairs/).waitFor();
  const rows = messages.getByRole("table").locator("tbody tr");
  const counts = await rows.locator("td:nth-child(3)").allInnerTexts();
  stage.must(
    counts.length > 0 && counts.every((text) => Number(text.replaceAll(",", "")) >= 50),
    `pairs with fewer messages are shown: ${counts}`,
  );
  await graph.getByRole("button", { name: new RegExp(`^${SERVER}:`) }).focus();
  await page.keyboard.press("Enter");
  await messages.getByText(/around the_slow_server there are/).waitFor();
  stage.must((await rows.count()) === 8, "the server's eight pairs are not those that are shown");
  await page.keyboard.press("ArrowLeft");
  await page.keyboard.press("Escape");
  await messages.getByText(/the filters leave/).waitFor();
  stage.must(at("around") === null, "all are to be seen again");
  await messages.getByRole("button", { name: "Kinds" }).click();
  await graph.getByRole("button", { name: /, 4 processes: messages sent 200 / }).waitFor();
  await messages.getByRole("button", { name: "Bytes", exact: true }).first().click();
  await page.waitForURL(/widths=bytes/);
  await messages.getByLabel("At least so many bytes on average").fill("1000000000");
  await messages.getByText("No pair has so many messages of that size.").waitFor();
  await seen(page, "messages of kinds", wrong);

  // The report: the server runs longest and receives most, and a list may be shorter.
  await tabs.getByRole("button", { name: "Report" }).click();
  const report = page.getByTestId("profile-report");
  const longest = report.getByRole("region", { name: "Runs longest" }).locator("tbody tr");
  await longest.filter({ hasText: SERVER }).waitFor();
  await report.getByRole("img", { name: /^On average/ }).waitFor();
  await seen(page, "report", wrong);
  await report.getByRole("button", { name: "First 5", exact: true }).click();
  await page.waitForURL(/top=5(&|$)/);
  await longest.nth(4).waitFor();
  await longest.nth(5).waitFor({ state: "detached" });
  await report
    .getByRole("region", { name: "Receives most messages" })
    .getByRole("button", { name: SERVER })
    .click();
  await page.getByTestId("profile-process").getByRole("heading", { name: SERVER }).waitFor();
}

/** A finding is shut but for the first one. */
async function open(details) {
  if (!(await details.evaluate((at) => at.open))) await details.locator("summary").click();
}
