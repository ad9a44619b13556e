// SPDX-License-Identifier: Apache-2.0
// The Groups page follows the cluster: all there, one node dies and comes back, a group is made and deleted.
export default async function cluster(stage) {
  const { nodes, groups } = stage.cluster;
  const page = await stage.open();

  await stage.until(
    page,
    "all nodes, up",
    (names) => {
      const shown = new Map(window.sderl?.nodes().map((n) => [n.name, n]));
      return names.every((name) => shown.get(name)?.status === "up");
    },
    nodes,
  );
  await stage.until(
    page,
    "all groups with their nodes",
    (groups) => {
      const shown = new Map(window.sderl.nodes().map((n) => [n.name, n.groups.map(String)]));
      return Object.entries(groups).every(
        ([group, members]) =>
          window.sderl.groups().some((g) => g.name === group) &&
          members.every((m) => shown.get(m)?.includes(group)),
      );
    },
    groups,
  );
  await stage.until(
    page,
    "every node in the picture, with a place of its own",
    (count) => {
      const places = window.sderl.nodes().map((n) => `${Math.round(n.x)},${Math.round(n.y)}`);
      return places.length >= count && new Set(places).size === places.length;
    },
    nodes.length,
  );

  // A node dies and comes back.
  const mortal = nodes[1];
  await stage.act("kill", { node: mortal });
  await stage.until(
    page,
    `${mortal} is gone`,
    (name) => window.sderl.nodes().find((n) => n.name === name)?.status !== "up",
    mortal,
  );
  await stage.act("restart", { node: mortal });
  await stage.until(
    page,
    `${mortal} is back`,
    (name) => window.sderl.nodes().find((n) => n.name === name)?.status === "up",
    mortal,
  );

  // A group is made of a free node and one that is in a group already, which has two then; and deleted.
  const free = nodes[6];
  const both = nodes[3];
  const placed = (name) =>
    window.sderl
      .nodes()
      .filter((n) => n.name === name)
      .map(({ x, y }) => ({ x, y }))[0];
  const before = await page.evaluate(placed, free);
  await stage.act("new_group", { group: "violet", nodes: [free, both] });
  await stage.until(
    page,
    "the new group with its nodes",
    ([a, b]) => {
      const of = new Map(window.sderl.nodes().map((n) => [n.name, n.groups.map(String)]));
      return (
        window.sderl.groups().some((g) => g.name === "violet") &&
        of.get(a)?.join() === "violet" &&
        of.get(b)?.length === 2
      );
    },
    [free, both],
  );
  await stage.until(
    page,
    "the node moves to its new group",
    ([name, before]) => {
      const n = window.sderl.nodes().find((n) => n.name === name);
      return n !== undefined && Math.hypot(n.x - before.x, n.y - before.y) > 5;
    },
    [free, before],
  );
  await stage.act("delete_group", { group: "violet", node: free });
  await stage.until(
    page,
    "the group is gone",
    (name) =>
      !window.sderl.groups().some((g) => g.name === "violet") &&
      window.sderl.nodes().find((n) => n.name === name)?.groups.length === 0,
    free,
  );

  // What happened is told.
  await page.getByTestId("nav-events").click();
  await page.getByRole("main").getByText("violet").first().waitFor();

  // The death of the node is one incident, which opens into what the other nodes told of it.
  const incident = page
    .getByRole("row")
    .filter({ hasText: `${mortal} is down` })
    .filter({ has: page.getByRole("button", { name: /consequence/ }) })
    .first();
  await incident.waitFor();
  await incident.getByRole("button").click();
  await page
    .locator("tr.incident-part")
    .filter({ hasText: `link to ${mortal} is down` })
    .first()
    .waitFor();
}
