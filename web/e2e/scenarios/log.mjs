// SPDX-License-Identifier: Apache-2.0
// What a node logs comes to the page as it is logged, is found again, and can be held; whatever its text is.
const HOSTILE = `<img src=x onerror=window.taken=1> \u202egnp \u0000\u001b[31m ${"w".repeat(3000)}`;

export default async function log(stage) {
  const [node, other] = stage.cluster.nodes;
  const page = await stage.open("#/log");
  const main = page.getByRole("main");
  const rows = (text) => main.getByRole("row").filter({ hasText: text });
  await stage.act("log", { node, level: "error", text: "the needle\nof two lines" });
  await rows("the needle").first().waitFor();

  // By its text, and by another node's, which has none of it.
  await page.getByTestId("log-text").fill("NEEDLE");
  await page.waitForURL(/text=NEEDLE/);
  await rows("the needle").first().waitFor();
  await main.getByLabel("Node", { exact: true }).selectOption(other);
  await main.getByText("No event passes these filters.").waitFor();
  await main.getByLabel("Node", { exact: true }).selectOption(node);
  await rows("the needle").first().waitFor();

  // One is read in full, and what comes meanwhile does not move it.
  await rows("the needle").first().click();
  await main.locator("pre").filter({ hasText: "of two lines" }).waitFor();
  await main
    .getByRole("button", { name: "Hold" })
    .and(page.locator("[aria-pressed=true]"))
    .waitFor();
  await stage.act("log", { node, level: "error", text: "a second needle" });
  const held = await stage.open(`#/log?text=second`);
  await held.getByRole("main").getByRole("row").filter({ hasText: "a second needle" }).waitFor();
  stage.must((await rows("a second needle").count()) === 0, "what is held stays as it is");
  await main.getByRole("button", { name: "Follow" }).click();
  await rows("a second needle").first().waitFor();

  // A text that is a program or turns what is beside it is shown as what it is.
  await page.getByTestId("log-text").fill("onerror");
  await stage.act("log", { node, level: "warning", text: HOSTILE });
  await rows("onerror").first().click();
  const full = main.locator("pre").filter({ hasText: "onerror" });
  await full.waitFor();
  const shown = await full.innerText();
  stage.must(/\\u\{202e\}/.test(shown) && /\\u\{1b\}/.test(shown), `shown: ${shown.slice(0, 99)}`);
  stage.must(
    (await page.evaluate(() => window.taken)) === undefined,
    "a text of the log ran as a program",
  );
  for (const viewport of [
    { width: 390, height: 844 },
    { width: 1440, height: 900 },
  ]) {
    await page.setViewportSize(viewport);
    const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    stage.must(wide <= 0, `${wide} pixels are beyond a window of ${viewport.width}`);
  }

  // Of too many the rest is counted, and that is shown where nothing is held.
  await page.getByTestId("log-text").fill("");
  await main.getByRole("button", { name: "Follow" }).click();
  await stage.act("log", { node, level: "warning", text: "one of many", times: 1000 });
  await main
    .getByText(/left out: more than a node may tell/)
    .first()
    .waitFor();
}
