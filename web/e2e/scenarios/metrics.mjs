// SPDX-License-Identifier: Apache-2.0
// Somebody puts a page of charts together by keyboard and saves it; another one opens it by its address, changes
// it, and deletes it, which the first one is told.
export default async function metrics(stage) {
  const one = await stage.open("#/metrics");
  const cards = (page) => page.locator(".page-metrics .metric-card");
  // A metric that does not change is a line without a height, which counts as hidden.
  const drawn = { state: "attached" };
  await cards(one).filter({ hasText: "mem" }).locator("path.line").first().waitFor(drawn);
  const before = await cards(one).count();

  // Charts are chosen by the tags of their metrics: garbage collections are nothing for who operates.
  const go = (route) => one.evaluate((to) => (location.hash = to), route);
  await go("#/metrics?charts=gc_s~c_~mem~c&tag=op");
  const collections = cards(one).filter({ hasText: "gc_s" });
  await one.getByText("1 of 2 charts").waitFor();
  stage.must((await collections.count()) === 0, "a chart for dev is shown under op");
  await one.getByLabel("Charts with a tag").selectOption("dev");
  await collections.waitFor();
  await cards(one).filter({ hasText: "mem" }).waitFor();
  await collections.getByRole("button", { name: /^Remove/ }).click();
  await one.getByText("1 chart, changed").waitFor();
  await go("#/metrics");
  await stage.until(
    one,
    "the overview again",
    (n) => document.querySelectorAll(".page-metrics .metric-card").length === n,
    before,
  );

  do await one.keyboard.press("/");
  while (
    !(await one
      .getByLabel("Metric", { exact: true })
      .evaluate((at) => at === document.activeElement))
  );
  await one.keyboard.type("run_queue");
  await one.keyboard.press("Tab");
  await one.keyboard.type("A node");
  await one.keyboard.press("Tab");
  await one.keyboard.type(stage.cluster.nodes[0]);
  await one.keyboard.press("Enter");
  const added = cards(one).filter({ hasText: "run_queue" });
  await added
    .filter({ hasText: stage.cluster.nodes[0] })
    .locator("path.line")
    .first()
    .waitFor(drawn);
  stage.must((await cards(one).count()) === before + 1, "one chart was added");

  // It moves to the front, and the button that moves it keeps the focus.
  await added.getByRole("button", { name: /^Earlier/ }).focus();
  for (let i = 0; i < before; i += 1) await one.keyboard.press("Enter");
  await cards(one).first().filter({ hasText: "run_queue" }).waitFor();
  stage.must(
    await added.evaluate((at) => at.contains(document.activeElement)),
    "the chart that was moved has lost the focus",
  );

  const offered = one.getByLabel("Metrics with a tag");
  await offered.selectOption("op");
  await one.getByLabel("Name under which the page is saved").fill("Queues & more");
  await one.keyboard.press("Enter");
  await one.waitForURL(/#\/metrics\/Queues%20%26%20more/);
  stage.must((await offered.inputValue()) === "op", "saving has chosen another tag");

  const two = await stage.open("#/metrics/Queues%20%26%20more", { alone: true });
  await cards(two).first().filter({ hasText: "run_queue" }).waitFor();
  stage.must((await cards(two).count()) === before + 1, "the page is not as it was saved");
  await two.getByRole("button", { name: "15 min" }).click();
  await two.getByText("changed and not saved").waitFor();
  await two.getByRole("button", { name: "Save" }).click();
  await two.getByText("changed and not saved").waitFor({ state: "detached" });

  // The other one does not overwrite that.
  await cards(one)
    .last()
    .getByRole("button", { name: /^Remove/ })
    .click();
  await one.getByRole("button", { name: "Save" }).click();
  await one.getByText("somebody has changed it meanwhile").first().waitFor();

  two.on("dialog", (dialog) => void dialog.accept());
  await two.getByRole("button", { name: "Delete" }).click();
  await two.waitForURL(/#\/metrics$/);
  const three = await stage.open("#/metrics/Queues%20%26%20more", { alone: true });
  await three.getByText("There is no page Queues & more").waitFor();
}
