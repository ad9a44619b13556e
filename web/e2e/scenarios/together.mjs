// SPDX-License-Identifier: Apache-2.0
// One link, two people, one of them at the other monitoring node: both see the same, and see it change.
export default async function together(stage) {
  const { nodes, second } = stage.cluster;
  const one = await stage.open(`#/node/${encodeURIComponent(nodes[3])}`);
  const link = one.url();
  const two = await stage.person({ alone: true });
  await two.goto(
    link.includes("token=")
      ? link
      : `${stage.cluster.url}?token=${stage.cluster.token}${new URL(link).hash}`,
  );
  await stage.connected(two);
  for (const page of [one, two]) await page.getByRole("main").getByText(nodes[3]).first().waitFor();

  const three = await stage.person({ alone: true });
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
  const before = await Promise.all(everybody.map(looks));
  await stage.act("new_group", { group: "amber", nodes: [nodes[6], nodes[0]] });
  await seen("everybody sees the new group", () =>
    window.sderl.groups().some((g) => g.name === "amber"),
  );
  // It sorts first, and takes no colour from another group: here, elsewhere, and in a page that is new.
  const late = await stage.open("", { alone: true });
  await stage.until(late, "the new group in a new page", () =>
    window.sderl?.groups().some((g) => g.name === "amber"),
  );
  await late.locator("[data-group=amber]").waitFor();
  // Who loads the page now has what those have who look at the same server.
  for (const [i, page] of [...everybody, late].entries()) {
    await page.locator("[data-group=amber]").waitFor();
    const [was, now] = [before[i] ?? before[0], await looks(page)];
    for (const [name, look] of Object.entries(was))
      stage.must(now[name] === look, `${name} was ${look} and is ${now[name]}`);
    stage.must(!Object.values(was).includes(now.amber), "amber has another group's look");
  }
  await stage.act("delete_group", { group: "amber", node: nodes[6] });
  await seen("everybody sees it go", () => !window.sderl.groups().some((g) => g.name === "amber"));
}

/** How each group is marked in the list. */
const looks = (page) =>
  page.evaluate(() =>
    Object.fromEntries(
      [...document.querySelectorAll('[data-group]:not([data-group="(free)"])')].map((row) => [
        row.dataset.group,
        row.querySelector(".swatch").innerHTML,
      ]),
    ),
  );
