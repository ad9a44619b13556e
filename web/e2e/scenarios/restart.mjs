// SPDX-License-Identifier: Apache-2.0
// The server goes away and comes back: the page says so, keeps what it has, and goes on by itself.
export default async function restart(stage) {
  // The browser itself complains about each try that nobody answers.
  stage.expected =
    /WebSocket connection to|Failed to load resource|net::ERR_CONNECTION_REFUSED|net::ERR_EMPTY_RESPONSE|net::ERR_CONNECTION_RESET/;
  const page = await stage.open();
  await stage.until(
    page,
    "the cluster",
    (count) => window.sderl?.nodes().length >= count,
    stage.cluster.nodes.length,
  );
  const [node] = stage.cluster.nodes;
  const acting = await stage.open(`#/actions/processes?on=${encodeURIComponent(`node:${node}`)}`);
  await acting.getByTestId("arg-filter").fill("code_server");
  await stage.act("stop_server");
  await page
    .getByTestId("connection")
    .filter({ hasText: /reconnecting/i })
    .waitFor();
  stage.must(
    (await page.evaluate(() => window.sderl.nodes().length)) >= stage.cluster.nodes.length,
    "the last picture stays",
  );
  const asked = acting.waitForResponse((one) => one.url().includes("api/v1/actions") && one.ok());
  await stage.act("start_server");
  await stage.connected(page);
  const frames = await page.evaluate(() => window.sderl.frames);
  await stage.until(page, "the picture goes on", (n) => window.sderl.frames > n, frames);
  await (await asked).finished();
  await acting.evaluate(() => new Promise((resolve) => requestAnimationFrame(resolve)));
  stage.must(
    (await acting.getByTestId("arg-filter").inputValue()) === "code_server",
    "what somebody has typed is gone",
  );
}
