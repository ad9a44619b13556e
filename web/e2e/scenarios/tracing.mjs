// SPDX-License-Identifier: Apache-2.0
// Tracing is switched on for a node, which says its cost first; what is traced is shown; and it is switched off.
export default async function tracing(stage) {
  const { nodes } = stage.cluster;
  const page = await stage.open(`#/node/${encodeURIComponent(nodes[0])}`);
  const button = page.getByTestId("trace");
  await page.locator('[data-testid="trace"][aria-checked="false"]:not([aria-disabled])').waitFor();
  await button.click();
  const dialog = page.getByRole("dialog").filter({ hasText: "Trace" });
  const go = dialog.getByRole("button", { name: "Turn tracing on" });
  await dialog.getByRole("spinbutton").first().fill("1");
  await dialog.getByRole("spinbutton").first().blur();
  await dialog.locator(".cost").filter({ hasNotText: "Asking" }).waitFor();
  stage.must(/\d/.test(await dialog.locator(".cost").innerText()), "the cost has a number in it");
  await go.click();
  await page.locator('[data-testid="trace"][aria-checked="true"]').waitFor();
  // What two nodes say to each other is in the table then.
  await stage.act("traffic", { from: nodes[0], to: nodes[2] });
  await page.getByRole("main").getByText("Traced messages").first().waitFor();
  await button.click();
  await page.locator('[data-testid="trace"][aria-checked="false"]').waitFor();
}
