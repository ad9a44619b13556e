// SPDX-License-Identifier: Apache-2.0
// A node dies: there is an alarm. One person acknowledges it, another at the other monitoring node sees who has.
export default async function alarms(stage) {
  const { nodes, second } = stage.cluster;
  const mortal = nodes[2];
  const one = await stage.open("#/alarms");
  const two = await stage.person({ alone: true });
  await two.goto(second);
  await stage.connected(two);
  await two.getByTestId("nav-alarms").click();
  const alarm = (page) =>
    page.locator(".page-alarms details").filter({ hasText: `${mortal} is down` });

  await stage.act("kill", { node: mortal });
  for (const page of [one, two]) await alarm(page).waitFor({ timeout: 120_000 });
  stage.must(
    /\d/.test((await one.getByTestId("nav-alarms").textContent()) ?? ""),
    "the alarm is not counted at the top",
  );

  // Without a name nothing is said.
  const button = (name) => alarm(one).getByRole("button", { name });
  if (!(await button("Acknowledge").isVisible())) await alarm(one).locator("summary").click();
  await button("Acknowledge").click();
  await one.getByText("Say your name first").waitFor();
  await one.locator(".alarm-name").fill("ann");
  await alarm(one).locator(".alarm-comment").fill("the rack <b>is</b> being moved");
  await button("Acknowledge").click();
  for (const page of [one, two]) {
    await page.getByRole("button", { name: "Acknowledged" }).click();
    await alarm(page).waitFor();
    await alarm(page).getByText("acknowledged: the rack <b>is</b> being moved").waitFor({
      state: "attached",
    });
  }

  await button("Silence for an hour").click();
  for (const page of [one, two]) await page.locator(".silences").getByText(mortal).waitFor();
  await two.locator(".alarm-name").fill("bob");
  await two.locator(".silences").getByRole("button", { name: "End" }).click();
  for (const page of [one, two]) await page.locator(".silences").waitFor({ state: "hidden" });

  await stage.act("restart", { node: mortal });
  for (const page of [one, two]) {
    await page.getByRole("button", { name: "Over" }).click();
    await alarm(page).first().waitFor({ timeout: 120_000 });
  }
}
