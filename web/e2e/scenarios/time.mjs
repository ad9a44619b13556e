// SPDX-License-Identifier: Apache-2.0
// Pause, scrub back to before a node was killed, look at it, and return to now.
export default async function time(stage) {
  const { nodes } = stage.cluster;
  const mortal = nodes[5];
  const page = await stage.open();
  const statusIs = ([name, up]) =>
    (window.sderl?.nodes().find((n) => n.name === name)?.status === "up") === up;
  await stage.until(page, "the node is up", statusIs, [mortal, true]);
  const scrub = page.getByTestId("scrub");
  const range = () =>
    scrub.evaluate((input) => [Number(input.min), Number(input.max), Number(input.value)]);
  await stage.until(page, "some history", () => {
    const input = document.querySelector('[data-testid="scrub"]');
    return Number(input.max) - Number(input.min) > 3000;
  });
  const [, , before] = await range();
  await stage.act("kill", { node: mortal });
  await stage.until(page, "the node is gone", statusIs, [mortal, false]);

  // Paused, the picture stays although the cluster goes on.
  await page.getByTestId("pause").click();
  const [, , held] = await range();
  await stage.act("restart", { node: mortal });
  const other = await stage.open();
  await stage.until(other, "somebody else sees it come back", statusIs, [mortal, true]);
  const [, , later] = await range();
  stage.must(held === later, `paused at ${held}, and at ${later} a moment later`);
  await stage.until(page, "paused, it is still gone", statusIs, [mortal, false]);

  // Before the kill it was there.
  await scrub.evaluate((input, t) => {
    input.value = String(t);
    input.dispatchEvent(new Event("input", { bubbles: true }));
    input.dispatchEvent(new Event("change", { bubbles: true }));
  }, before);
  await stage.until(page, "in the past it is there", statusIs, [mortal, true]);

  await page.getByTestId("live").click();
  await stage.until(page, "now it is there again", statusIs, [mortal, true]);
  await stage.until(
    page,
    "and time goes on",
    (t) => Number(document.querySelector('[data-testid="scrub"]').value) > t,
    later,
  );
}
