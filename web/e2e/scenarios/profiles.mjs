// SPDX-License-Identifier: Apache-2.0
// Somebody samples a node of the running cluster from its page, sees it end and opens it; tries what a recording costs,
// records and opens that; deletes both. Whoever opens the address of one sees the same.
import { faults } from "../readable.mjs";

export default async function profiles(stage) {
  const [node] = stage.cluster.nodes;
  const page = await stage.open(`#/node/${encodeURIComponent(node)}`);
  const lines = page.getByTestId("profiles").locator(".profile-line");
  const line = (state) => lines.and(page.locator(`[data-state=${state}]`));
  const wrong = [];

  // From the page of the node, by keyboard.
  await page.getByTestId("to-profile").focus();
  await page.keyboard.press("Enter");
  await page.locator(`[data-testid=where] option[value="node:${node}"]`).waitFor({
    state: "attached",
  });
  stage.must((await page.getByTestId("where").inputValue()) === `node:${node}`, "another place");
  await page.getByTestId("seconds").fill("2");
  await page.getByTestId("seconds").press("Enter");
  await line("ended").getByText("Sampling").waitFor();
  wrong.push(...(await faults(page, "one that is done")));
  await line("ended").getByTestId("open").click();
  await page.getByRole("heading", { name: `Samples of ${node}` }).waitFor();
  await page.getByTestId("samples-kinds").getByRole("row").nth(1).waitFor();
  wrong.push(...(await faults(page, "samples of a node")));

  // The page is of the cluster all the same, and its address is for others.
  await page.locator('[aria-current="page"][data-testid="nav-profiles"]').waitFor();
  const other = await stage.open(new URL(page.url()).hash);
  await other.getByRole("heading", { name: `Samples of ${node}` }).waitFor();
  await stage.close(other);

  // A recording tells its cost, and waits for a word.
  await page.getByTestId("nav-profiles").click();
  await page.getByTestId("where").selectOption("group:red");
  await page.getByRole("button", { name: "Concurrency" }).click();
  await page.getByTestId("seconds").fill("60");
  await page.getByTestId("mib").fill("16");
  await page.getByTestId("profile").click();
  await line("ready").getByText("events and").first().waitFor();
  stage.must(
    (await line("ready").locator(".profile-cost li").count()) === 3,
    "not the cost of each of the three nodes",
  );
  wrong.push(...(await faults(page, "the cost")));
  await line("ready").getByTestId("begin").click();
  await line("running").getByText("left").waitFor();
  // What runs is not begun once more.
  stage.expected = /status of 409/;
  await page.getByTestId("profile").click();
  await page.getByRole("alert").getByText("is being profiled").waitFor();
  await line("running").getByTestId("stop").click();
  const recorded = line("ended").filter({ hasText: "Concurrency" });
  await recorded.getByTestId("open").click();
  await page.getByRole("heading", { name: "Profile of" }).waitFor();
  await page.getByRole("button", { name: "Nodes" }).waitFor();
  wrong.push(...(await faults(page, "the recording of a group")));

  // On a phone, dark.
  const phone = await stage.open("#/profiles", {
    viewport: { width: 390, height: 844 },
    colorScheme: "dark",
    hasTouch: true,
    isMobile: true,
  });
  await phone.getByTestId("profiles").getByText("Concurrency").waitFor();
  wrong.push(...(await faults(phone, "the list on a phone")));
  await stage.close(phone);

  // What other pages brought with them leaves the list as it was.
  await page.getByTestId("nav-profiles").click();
  await lines.nth(1).waitFor();
  wrong.push(...(await faults(page, "the list after other pages")));
  for (let left = 2; left > 0; left -= 1) {
    await lines
      .nth(left - 1)
      .getByTestId("delete")
      .click();
    await page.getByTestId("really-delete").click();
    await stage.until(
      page,
      "one less",
      (count) => document.querySelectorAll(".profile-line").length === count,
      left - 1,
    );
  }
  stage.must(wrong.length === 0, wrong.join("\n"));
}
