// SPDX-License-Identifier: Apache-2.0
// The Groups page follows the cluster: all there, one node dies and comes back, a group is made and deleted.
export default async function cluster(stage) {
  const { nodes, groups } = stage.cluster;
  // The only one where all moves.
  const page = await stage.open("", { reducedMotion: "no-preference" });

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

  await dragged(stage, page, nodes);

  // A node dies and comes back.
  const mortal = nodes[1];
  await stage.act("kill", { node: mortal });
  await stage.until(
    page,
    `${mortal} is gone`,
    (name) => window.sderl.nodes().find((n) => n.name === name)?.status !== "up",
    mortal,
  );
  await triaged(page, mortal);
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
  // Who looks at a group that is deleted is told so.
  await page.evaluate(() => (location.hash = "#/groups/violet"));
  await page.getByRole("main").getByText("violet").first().waitFor({ state: "attached" });
  await stage.act("delete_group", { group: "violet", node: free });
  await page.getByText("There is no group “violet”").waitFor();
  await page.evaluate(() => (location.hash = "#/groups"));
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

/** What is found about the node is acknowledged, looked at again, and muted: each time it is in its list alone. */
async function triaged(page, node) {
  await page.getByTestId("nav-findings").click();
  const card = page.locator("details[data-kind=node_down]").filter({ hasText: node });
  const say = async (what) => {
    await card.waitFor();
    if ((await card.getAttribute("open")) === null) await card.locator("summary").click();
    await card.getByRole("button", { name: what, exact: true }).click();
    await card.waitFor({ state: "detached" });
  };
  const list = (name) =>
    page.getByRole("group", { name: "State" }).getByRole("button", { name }).click();
  for (const [what, where] of [
    ["Acknowledge", "Acknowledged"],
    ["Mute for an hour", "Muted"],
  ]) {
    await say(what);
    await list(where);
    await say("Look at it again");
    await list("To look at");
  }
  await card.waitFor();
  await page.getByTestId("nav-groups").click();
}

/** The hand moves the map: the nodes come along, and are found where they are then. */
async function dragged(stage, page, nodes) {
  const box = await page.locator("canvas").first().boundingBox();
  const places = () =>
    page.evaluate(() => Object.fromEntries(window.sderl.nodes().map((n) => [n.name, [n.x, n.y]])));
  await stage.until(
    page,
    "the picture is at rest",
    // Over so many pictures: on a busy machine none may be drawn for a long time while all moves.
    () => {
      const now = JSON.stringify(window.sderl.nodes().map((n) => [n.x, n.y]));
      window.sderlRests = window.sderlWas === now ? (window.sderlRests ?? 0) + 1 : 0;
      window.sderlWas = now;
      return window.sderlRests >= 12;
    },
    null,
    "raf",
  );
  const before = await places();
  const name = nodes[3];
  // Above the lowest corner there is nothing but ground.
  const from = [box.x + 30, box.y + box.height - 30];
  const [dx, dy] = [40, -24];
  await page.mouse.move(...from);
  await page.mouse.down();
  for (let i = 1; i <= 8; i++)
    await page.mouse.move(from[0] + (i * dx) / 8, from[1] + (i * dy) / 8);
  await page.mouse.up();
  await stage.until(
    page,
    "the nodes come along",
    ([name, x, y]) => {
      const n = window.sderl.nodes().find((n) => n.name === name);
      return Math.abs(n.x - x) < 1 && Math.abs(n.y - y) < 1;
    },
    [name, before[name][0] + dx, before[name][1] + dy],
  );
  const moved = (await places())[name];
  await page.mouse.move(...moved);
  await page.getByRole("main").getByText(name).locator("visible=true").first().waitFor();
  await page.keyboard.press("0");
  await page.mouse.move(...from);
}
