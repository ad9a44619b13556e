// SPDX-License-Identifier: Apache-2.0
// The first monitoring node dies. Who looks at the other one goes on seeing what happens; the first is back later, with
// what happened before, and shows the same picture.
export default async function takeover(stage) {
  const { nodes, watchers, second } = stage.cluster;
  const page = await stage.person();
  await page.goto(second);
  await stage.connected(page);
  const up = (name) => window.sderl?.nodes().find((n) => n.name === name)?.status === "up";
  for (const node of nodes) await stage.until(page, `${node} is up`, up, node);

  await stage.act("kill", { node: watchers[0] });
  await stage.act("new_group", { group: "teal", nodes: [nodes[6], nodes[1]] });
  await stage.until(page, "a group made after the death is seen", () =>
    window.sderl.groups().some((g) => g.name === "teal"),
  );
  await stage.act("delete_group", { group: "teal", node: nodes[6] });
  await stage.until(page, "and goes", () => !window.sderl.groups().some((g) => g.name === "teal"));
  for (const node of nodes) await stage.until(page, `${node} is still up`, up, node);
  const frames = await page.evaluate(() => window.sderl.frames);
  await stage.until(page, "the picture goes on", (n) => window.sderl.frames > n, frames);
  const early = await page.evaluate(() => window.sderl.shown().t);
  await stage.act("restart", { node: watchers[0] });
  const { link } = await stage.act("address", { node: watchers[0] });
  const again = await stage.person();
  await again.goto(link);
  await stage.connected(again);
  for (const node of nodes) await stage.until(again, `${node} is up there`, up, node);
  // In a page that has seen groups or nodes come and go the nodes keep their places.
  for (const [one, address] of [
    [page, second],
    [again, link],
  ]) {
    await one.goto("about:blank");
    await one.goto(address);
    await stage.connected(one);
    for (const node of nodes) await stage.until(one, `${node} is up`, up, node);
  }
  await same(stage, page, again, nodes);
  await again.evaluate((t) => (location.hash = `#/groups?t=${t}`), early);
  await stage.until(
    again,
    "what was before the restart",
    (t) => {
      const { mode, t: shown } = window.sderl.shown();
      return mode !== "live" && shown !== null && Math.abs(shown - t) < 5000;
    },
    early,
  );
}

/** Two pages have the nodes at the same places. */
async function same(stage, one, other, nodes) {
  const places = (page) =>
    page.evaluate(() => window.sderl.nodes().map(({ name, x, y }) => [name, x, y]));
  for (const page of [one, other])
    await stage.until(
      page,
      "the picture is at rest",
      (names) => {
        const now = window.sderl.nodes().map(({ name, x, y }) => [name, x, y]);
        const was = window.sderlWas;
        window.sderlWas = JSON.stringify(now);
        return (
          names.every((n) => now.some(([name, x]) => name === n && x !== null)) &&
          was === window.sderlWas
        );
      },
      nodes,
      500,
    );
  const elsewhere = async () => {
    const [mine, theirs] = [new Map(), new Map()];
    for (const [name, x, y] of await places(one)) mine.set(name, [x, y]);
    for (const [name, x, y] of await places(other)) theirs.set(name, [x, y]);
    return nodes.find((node) => {
      const [[x1, y1], [x2, y2]] = [mine.get(node), theirs.get(node)];
      return Math.hypot(x1 - x2, y1 - y2) >= 3;
    });
  };
  // On a busy machine a picture stands still also while its next places are worked out.
  let node = await elsewhere();
  for (const end = Date.now() + 60_000; node !== undefined && Date.now() < end;) {
    await one.evaluate(() => new Promise((resolve) => requestAnimationFrame(resolve)));
    node = await elsewhere();
  }
  stage.must(node === undefined, `${node} is elsewhere after the restart`);
}
