// SPDX-License-Identifier: Apache-2.0
// Over TLS, with a certificate of an authority that only some trust: who does sees all that there is without TLS, from the
// printed address on and over one encrypted socket; a wrong token and who does not trust the authority see nothing.
export default async function tls(stage) {
  const { nodes } = stage.cluster;
  const { link, url } = await stage.act("serve_tls");
  try {
    stage.must(link.startsWith("https://"), `the printed address is ${link}`);
    const page = await stage.person({ ignoreHTTPSErrors: true });
    const sockets = [];
    page.on("websocket", (socket) => sockets.push(socket.url()));
    await page.goto(link);
    await stage.connected(page);
    await stage.until(
      page,
      "the cluster",
      (count) => window.sderl?.nodes().length >= count && window.sderl.frames > 1,
      nodes.length,
    );
    stage.must(
      sockets.length > 0 && sockets.every((one) => one.startsWith("wss://")),
      `sockets: ${sockets.join(" ")}`,
    );
    stage.must(!page.url().includes("token"), `the token stays in the address: ${page.url()}`);
    await stage.act("traffic", { from: nodes[0], to: nodes[2] });
    await page.getByTestId("nav-traffic").click();
    await page.getByRole("main").getByRole("row").filter({ hasText: nodes[0] }).first().waitFor();
    // What goes by a request of its own goes over TLS too, with what the page keeps of the token.
    const saved = page.waitForEvent("download");
    await page.getByRole("button", { name: "CSV" }).click();
    stage.must((await saved).suggestedFilename().endsWith(".csv"), "a table is saved");

    stage.expected = /ERR_CERT_AUTHORITY_INVALID|401|WebSocket connection to/;
    const guessing = await stage.person({ ignoreHTTPSErrors: true });
    await guessing.goto(`${url}#token=another-token`);
    await guessing.getByTestId("token").waitFor();
    const stranger = await stage.person({ alone: true });
    const refused = await stranger.goto(link).then(
      () => "nothing",
      (error) => String(error),
    );
    stage.must(refused.includes("ERR_CERT_AUTHORITY_INVALID"), `a stranger saw ${refused}`);
    // A page that stays would ask over TLS while the server goes back to plain HTTP.
    await stage.leave();
  } finally {
    await stage.act("serve_plain");
  }
}
