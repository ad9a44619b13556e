// SPDX-License-Identifier: Apache-2.0
// What happens is recorded, and shown again later in the place of the live cluster.
export default async function recording(stage) {
  const { nodes } = stage.cluster;
  const mortal = nodes[3];
  const statusIs = ([name, up]) =>
    (window.sderl?.nodes().find((n) => n.name === name)?.status === "up") === up;
  const page = await stage.open();
  const list = page.getByRole("dialog", { name: "Recordings" });
  await stage.until(page, "the node is up", statusIs, [mortal, true]);

  await page.getByTestId("recordings").click();
  await list.getByRole("button", { name: "Start recording" }).click();
  await list.waitFor({ state: "hidden" });
  // That it runs is said, to others too.
  await page
    .getByTestId("recordings")
    .and(page.getByTitle(/is being written/))
    .waitFor();
  const other = await stage.open("", { alone: true });
  await other.getByTestId("recordings").click();
  await other.getByRole("dialog").getByText("Recording runs").waitFor();
  await stage.close(other);
  const begun = await page.evaluate(() => window.sderl.shown().seq);
  await stage.until(
    page,
    "two frames in the recording",
    (seq) => window.sderl.shown().seq > seq + 2,
    begun,
  );
  await stage.act("kill", { node: mortal });
  await stage.until(page, "the node is gone", statusIs, [mortal, false]);
  const gone = await page.evaluate(() => window.sderl.shown().seq);
  await stage.until(page, "and a frame of that", (seq) => window.sderl.shown().seq > seq + 1, gone);
  await page.getByTestId("recordings").click();
  await list.getByRole("button", { name: "Stop recording" }).click();
  await list.waitFor({ state: "hidden" });
  await page
    .getByTestId("recordings")
    .and(page.getByTitle("Recordings", { exact: true }))
    .waitFor();
  await stage.act("restart", { node: mortal });
  await stage.until(page, "the node is back", statusIs, [mortal, true]);
  const back = await page.evaluate(() => window.sderl.shown().seq);

  await page.getByTestId("recordings").click();
  await list.getByRole("button", { name: "Open" }).first().click();
  await list.waitFor({ state: "hidden" });
  await page.locator('[data-testid="live"][aria-pressed="false"]').waitFor();
  // Not the live cluster, where the node is back as well.
  await stage.until(
    page,
    "a frame of its beginning",
    (seq) => window.sderl.shown().seq < seq,
    back,
  );
  await stage.until(page, "its beginning, with the node", statusIs, [mortal, true]);
  // To its end, by the keyboard.
  await page.getByTestId("scrub").press("End");
  await stage.until(page, "its end, without the node", statusIs, [mortal, false]);

  await page.getByTestId("live").click();
  await page.locator('[data-testid="live"][aria-pressed="true"]').waitFor();
  await stage.until(page, "the live cluster, with the node", statusIs, [mortal, true]);
}
