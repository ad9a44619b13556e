// SPDX-License-Identifier: Apache-2.0
// Without the token nothing of the cluster is shown; with it typed in, all is.
export default async function tokens(stage) {
  // The browser itself tells of every answer that is a refusal.
  stage.expected = /401|403|WebSocket connection to/;
  const { url, token, nodes } = stage.cluster;
  for (const address of [url, `${url}?token=this-is-not-the-token`]) {
    const page = await stage.person({ alone: true });
    const answer = await page.goto(address);
    stage.must(!(await answer.text()).includes(token), "the page has the token in it");
    const field = page.getByTestId("token");
    await field.waitFor();
    const text = await page.getByRole("main").innerText();
    stage.must(
      nodes.every((name) => !text.includes(name)),
      "names of nodes are shown without the token",
    );
    stage.must(
      (await page.evaluate(() => fetch("api/v1/state").then((r) => r.status))) === 401,
      "the state is told without the token",
    );
    await field.fill(token);
    await field.press("Enter");
    await stage.connected(page);
    await stage.until(
      page,
      "the cluster",
      (count) => window.sderl?.nodes().length >= count,
      nodes.length,
    );
    // What is in the address ends up in histories and logs.
    stage.must(!page.url().includes(token), "the token stays in the address");
    await stage.close(page);
  }
}
