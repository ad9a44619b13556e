// SPDX-License-Identifier: Apache-2.0
// Without the token nothing of the cluster is shown; with it typed in, all is. A page whose token ends while it is open
// says what has become of it, and goes on with another one.
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

  const admin = await stage.open();
  const ask = (method, path, body) =>
    admin.evaluate(
      async ([method, path, body, token]) => {
        const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
        const request = { method, headers };
        if (body) request.body = JSON.stringify(body);
        const answer = await fetch(`api/v1/tokens${path}`, request);
        if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status}`);
        return answer.status === 204 ? null : answer.json();
      },
      [method, path, body, token],
    );
  const page = await stage.person({ alone: true });
  const field = page.getByTestId("token");
  const connected = page.getByTestId("connection").filter({ hasText: /^connected$/i });
  const title = (text) => page.getByRole("heading", { name: text });
  // On a busy machine one that is short may have ended before the page is there.
  let seconds = 5;
  for (; ; seconds *= 2) {
    const short = await ask("POST", "", { name: `for${seconds}`, role: "viewer", for_s: seconds });
    await page.goto(`${url}?token=${short.token}`);
    await connected.or(field).first().waitFor();
    if (await connected.isVisible()) break;
  }
  await title("The token has expired").waitFor({ timeout: seconds * 1_000 + 60_000 });
  const other = await ask("POST", "", { name: "other", role: "viewer" });
  await field.fill(other.token);
  await field.press("Enter");
  await connected.waitFor();
  await title("The token has expired").waitFor({ state: "detached" });
  await ask("DELETE", `/${other.about.id}`);
  await title("The token was revoked").waitFor();
  await field.fill("this-is-not-a-token");
  await field.press("Enter");
  await title("A token is needed").waitFor();
  await field.fill(token);
  await field.press("Enter");
  await connected.waitFor();
}
