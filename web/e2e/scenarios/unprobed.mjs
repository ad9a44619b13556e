// SPDX-License-Identifier: Apache-2.0
// Two nodes run the library without a probe, a third one is of plain Erlang. What is not known of them is a dash, the
// pages say why and what to type, nothing is started there before that is typed, and then all is known.
const DASH = "–";

export default async function unprobed(stage) {
  const { nodes } = await stage.act("unprobed");
  const [bare, other, plain] = nodes;
  await stage.act("register", { group: "slate", node: bare, name: "bob_of_the_tests" });
  const page = await stage.open("#/groups");
  const main = page.getByRole("main");
  await stage.until(
    page,
    "the nodes without a probe, up, and the group of two of them",
    ([one, two, three]) => {
      const shown = new Map(window.sderl?.nodes().map((n) => [n.name, n]));
      return (
        [one, two, three].every((name) => shown.get(name)?.status === "up") &&
        [one, two].every((name) => shown.get(name).groups.join() === "slate")
      );
    },
    [bare, other, plain],
  );
  const chip = page.getByRole("button", { name: "Some unprobed" });
  await chip.waitFor();
  const go = (route) => page.evaluate((to) => (location.hash = to), route);

  // Links tell how much goes between the nodes; names are told by a probe alone.
  await stage.act("traffic", { from: bare, to: other });
  const rate = page.locator(".panel-row[data-group=slate] .panel-rate");
  await rate.filter({ hasText: /^[1-9]/ }).waitFor();
  await go("#/groups/slate");
  await main.getByText(`2 nodes, ${DASH} names,`).waitFor();

  // In the sum of all groups something is missing, and of this group alone nothing is known.
  await go("#/names?group=slate");
  const groups = main.getByRole("table", { name: "Groups" });
  const cells = (row) => row.getByRole("cell").allTextContents();
  const row = groups.getByRole("row").filter({ hasText: "slate" });
  await row.waitFor();
  stage.must(
    (await cells(row)).filter((text) => text === DASH).length === 2,
    `names and registrations of a group without a probe: ${await cells(row)}`,
  );
  const sum = groups.getByRole("row").last();
  await sum.filter({ hasText: /≥ \d+≥ \d/ }).waitFor();
  await main.getByText(/names of this group are not known here/).waitFor();
  await main.getByPlaceholder("Filter").first().fill("slate");
  await sum.filter({ hasText: `${DASH}${DASH}` }).waitFor();

  // The library without a probe is told apart from plain Erlang; both say what to type.
  const offered = "sderl_mon:set(#{inject => true}).";
  for (const [node, what] of [
    [plain, "Stock node."],
    [bare, "The library runs here, without a probe."],
  ]) {
    await go(`#/node/${encodeURIComponent(node)}`);
    const note = main.locator(".note").filter({ hasText: what });
    await note.getByText(offered, { exact: true }).waitFor();
    await note.getByText("bin/sderl mon --inject", { exact: true }).waitFor();
    const queue = main.locator(".stat").filter({ hasText: "Message queue" });
    await queue.filter({ hasText: DASH }).waitFor();
    stage.must(
      (await main.getByTestId("trace").getAttribute("aria-disabled")) === "true",
      `${node} can be traced without a probe`,
    );
  }

  const { nodes: unasked } = await stage.act("probes");
  stage.must(unasked.length === 0, `probes nobody asked for: ${unasked}`);
  await stage.act("type", { text: offered });
  await main.locator(".note").filter({ hasText: "without a probe" }).waitFor({ state: "detached" });
  await chip.waitFor({ state: "hidden" });
  await go("#/names?group=slate");
  await main.getByText("bob_of_the_tests").first().waitFor();
  await go("#/groups/slate");
  await main.getByText("2 nodes, 1 name,").waitFor();
}
