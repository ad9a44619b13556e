// SPDX-License-Identifier: Apache-2.0
// Every page shows something of the cluster, by its link in the header and by its address.
export default async function pages(stage) {
  const { nodes } = stage.cluster;
  const page = await stage.open();
  const main = page.getByRole("main");

  // A node is opened from the picture.
  const at = await stage.until(
    page,
    "a node that stands still",
    (name) => {
      const n = window.sderl?.nodes().find((n) => n.name === name);
      if (n === undefined) return false;
      const last = (window.before ??= {});
      const still = Math.hypot(n.x - (last.x ?? -9), n.y - (last.y ?? -9)) < 0.5;
      window.before = { x: n.x, y: n.y };
      return still ? { x: n.x, y: n.y } : false;
    },
    nodes[0],
  );
  await page.mouse.dblclick(at.x, at.y);
  await page.waitForURL(/#\/node\//);
  await main.getByText(nodes[0]).first().waitFor();
  await main
    .getByText(/scheduler/i)
    .first()
    .waitFor();
  await main
    .getByText(/run queue/i)
    .first()
    .waitFor();
  await main
    .getByText(/memory/i)
    .first()
    .waitFor();

  await stage.act("traffic", { from: nodes[0], to: nodes[2] });
  await page.getByTestId("nav-traffic").click();
  await main
    .getByRole("row")
    .filter({ hasText: nodes[0] })
    .filter({ hasText: nodes[2] })
    .first()
    .waitFor();

  await page.getByTestId("nav-names").click();
  await main.getByText("red").first().waitFor();
  await page.getByTestId("nav-events").click();
  await main.getByRole("heading").first().waitFor();
  await page.getByTestId("nav-findings").click();
  await main.getByRole("heading").first().waitFor();
  await page.getByTestId("nav-alarms").click();
  await main.getByRole("heading", { name: "Alarms" }).waitFor();

  // By its address, in a page that was empty before.
  const other = await stage.person();
  for (const route of [
    "#/matrix",
    `#/node/${encodeURIComponent(nodes[2])}`,
    "#/traffic?by=edge",
    "#/names?group=green",
    "#/findings",
    "#/alarms",
  ]) {
    await other.goto("about:blank");
    await other.goto(stage.address(route));
    await stage.connected(other);
    await other.getByRole("main").getByText(/\w/).first().waitFor();
    stage.must(
      (await other.getByText("could not be loaded").count()) === 0,
      `${route} could not be loaded`,
    );
  }
}
