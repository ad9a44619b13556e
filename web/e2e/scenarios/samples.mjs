// SPDX-License-Identifier: Apache-2.0
// Somebody opens samples of two nodes: reads who takes the processors, chooses a part of the time, a kind of processes
// and a node, by pointer and by keyboard, at a desk and on a phone, light and dark.
import { playedWithLooks, seen } from "../readable.mjs";

const SERVER = "the_slow_server";

export default async function samples(stage) {
  const { link } = await stage.act("samples");
  await playedWithLooks(stage, link, played);
}

async function played(stage, page, wrong) {
  const tabs = page.getByRole("group", { name: "Shown below the curves" });
  const at = (name) => new URLSearchParams(new URL(page.url()).hash.split("?")[1] ?? "").get(name);
  const kinds = page.getByTestId("samples-kinds");
  const server = kinds.getByRole("row").filter({ hasText: SERVER });
  const of = page.getByTestId("samples-curves").getByRole("status").last();

  // Each share has its interval.
  await server.getByText(/\d.* % \([\d.<\s]+ to [\d.]+\)/).waitFor();
  await seen(page, "processes", wrong);
  await kinds.getByRole("button", { name: "Mailboxes" }).click();
  await kinds
    .getByRole("columnheader", { name: "Mailboxes" })
    .and(page.locator("[aria-sort]"))
    .waitFor();

  // A part of the time, by keyboard: the slider, one part later, all of it.
  await page.getByRole("slider", { name: "To" }).focus();
  await page.keyboard.press("Home");
  await page.waitForURL(/to=\d+/);
  const end = at("to");
  await tabs.getByRole("button", { name: "Processes" }).focus();
  await page.keyboard.press("]");
  await page.waitForURL((url) => new RegExp(`from=${end}`).test(url.hash));
  await of.filter({ hasText: " to " }).waitFor();
  await page.keyboard.press("Home");
  await of.filter({ hasText: "The whole time" }).waitFor();
  stage.must(at("from") === null, "the whole time still has a part in its address");

  // A kind of processes, by keyboard: its own functions.
  await kinds.getByRole("searchbox").fill(SERVER);
  await server.focus();
  await page.keyboard.press("Enter");
  await page.waitForURL(/kind=the_slow_server/);
  await tabs.getByRole("button", { name: "Waits" }).click();
  await page.getByText(`Only ${SERVER}`).waitFor();
  await seen(page, "waits", wrong);
  await page.getByRole("button", { name: "All processes" }).click();
  await tabs.getByRole("button", { name: "Functions" }).click();
  await page.getByTestId("samples-functions").getByRole("row").nth(1).waitFor();
  await seen(page, "functions", wrong);
  await tabs.getByRole("button", { name: "States" }).click();
  const schedulers = page.getByRole("table", { name: "Schedulers" });
  await schedulers.getByText("other@host").first().waitFor();
  await seen(page, "states", wrong);

  // What the nodes told of themselves, with the mailbox that was named.
  await tabs.getByRole("button", { name: "Node over time" }).click();
  const overall = page.getByTestId("samples-overall");
  for (const name of ["Processes that wait for a scheduler", "Processes", "Memory"])
    await overall.getByRole("heading", { name, exact: true }).waitFor();
  await overall
    .getByText(/^the_slow_server at .+: [\d,.]+ messages at most$/)
    .first()
    .waitFor();
  await seen(page, "node over time", wrong);

  // A node.
  await tabs.getByRole("button", { name: "Nodes" }).click();
  await page.getByTestId("samples-nodes").getByText("other@host").click();
  await page.waitForURL(/node=other/);
  await seen(page, "nodes", wrong);
  await page.getByRole("combobox", { name: "Node" }).selectOption("All nodes");
  await page.waitForURL((url) => !url.hash.includes("node="));
  await tabs.getByRole("button", { name: "Processes" }).click();
}
