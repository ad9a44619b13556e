// SPDX-License-Identifier: Apache-2.0
// One link, two people, one of them at the other monitoring node: both see the same, and see it change.
export default async function together(stage) {
  const { nodes, second } = stage.cluster;
  const one = await stage.open(`#/node/${encodeURIComponent(nodes[3])}`);
  const link = one.url();
  const two = await stage.person();
  await two.goto(
    link.includes("token=")
      ? link
      : `${stage.cluster.url}?token=${stage.cluster.token}${new URL(link).hash}`,
  );
  await stage.connected(two);
  for (const page of [one, two]) await page.getByRole("main").getByText(nodes[3]).first().waitFor();

  const three = await stage.person();
  await three.goto(second);
  await stage.connected(three);
  for (const page of [one, two]) await page.getByTestId("nav-groups").click();
  const everybody = [one, two, three];
  const seen = (what, fn, arg) =>
    Promise.all(everybody.map((page) => stage.until(page, what, fn, arg)));
  await seen(
    "the node is up",
    (name) => window.sderl?.nodes().find((n) => n.name === name)?.status === "up",
    nodes[6],
  );
  await stage.act("new_group", { group: "amber", nodes: [nodes[6], nodes[0]] });
  await seen("everybody sees the new group", () =>
    window.sderl.groups().some((g) => g.name === "amber"),
  );
  await stage.act("delete_group", { group: "amber", node: nodes[6] });
  await seen("everybody sees it go", () => !window.sderl.groups().some((g) => g.name === "amber"));
}
