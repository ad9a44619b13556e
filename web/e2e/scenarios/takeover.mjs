// SPDX-License-Identifier: Apache-2.0
// The first monitoring node dies. Who looks at the other one goes on seeing what happens, and the first is back later.
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
  await stage.act("restart", { node: watchers[0] });
}
