// SPDX-License-Identifier: Apache-2.0
// Somebody opens a recording of two nodes, on one of which a client asks a server on the other one: the lanes are by
// node, messages go from one to the other, and so does the critical path; operations on groups are
// marks, and played; messages went over gateways.
import { playedWithLooks, seen } from "../readable.mjs";

const CLIENT = "client at a@h";
const SERVER = "server at b@h";

export default async function profileNodes(stage) {
  const { link } = await stage.act("profile-nodes");
  await playedWithLooks(stage, link, played);
}

async function played(stage, page, wrong) {
  const tabs = page.getByRole("group", { name: "Shown below the time line" });
  await page.getByRole("heading", { name: "Profile of 2 nodes" }).waitFor();
  const processes = page.getByTestId("profile-processes");
  for (const name of [CLIENT, SERVER])
    await processes.getByRole("row").filter({ hasText: name }).waitFor();

  // The client's messages go to the other node and come from there.
  await processes.getByText(CLIENT).click();
  await page
    .getByTestId("profile-arrows")
    .filter({ hasText: "100 messages of the chosen process." })
    .waitFor();
  await seen(page, "processes", wrong);

  // What the nodes sent each other, and for how long it was on its way.
  await tabs.getByRole("button", { name: "Nodes" }).click();
  const nodes = page.getByTestId("profile-nodes");
  await nodes.getByText("100 messages between nodes and 0 within them").waitFor();
  const ways = nodes.getByRole("table").nth(1);
  for (const [from, to] of [
    ["a@h", "b@h"],
    ["b@h", "a@h"],
  ])
    await ways
      .getByRole("row")
      .filter({ hasText: new RegExp(`^${from}${to}50`) })
      .waitFor();
  await seen(page, "nodes", wrong);

  // The nodes as a graph, with the same messages.
  await tabs.getByRole("button", { name: "Messages" }).click();
  const messages = page.getByTestId("profile-messages");
  await messages.getByRole("button", { name: "Nodes", exact: true }).click();
  const graph = messages.getByTestId("profile-graph");
  for (const node of ["a@h", "b@h"])
    await graph.getByRole("button", { name: new RegExp(`^${node}: messages sent 50 `) }).waitFor();
  await seen(page, "graph of nodes", wrong);

  // The path crosses over with each question and each answer.
  await tabs.getByRole("button", { name: "Critical path" }).click();
  const path = page.getByTestId("profile-path");
  await path.getByRole("heading", { name: "Nodes on it" }).waitFor();
  await path.getByText("messages between nodes", { exact: true }).waitFor();
  for (const name of [CLIENT, SERVER])
    await path.getByRole("button", { name, exact: true }).first().waitFor();
  await seen(page, "critical path", wrong);
  await replayed(page, tabs, wrong);
  await routed(page, tabs, wrong);
}

/** The groups at the end, step by step from the begin, played, and at the operation that one points at. */
async function replayed(page, tabs, wrong) {
  await tabs.getByRole("button", { name: "Groups" }).click();
  const replay = page.getByTestId("profile-replay");
  const says = replay.getByRole("status").first();
  const group = (name) => replay.getByRole("region", { name: `Group ${name}` });
  await says.filter({ hasText: "4 of 4" }).waitFor();
  await group("shop").getByText("b@h").waitFor();
  await group("shop").getByText("gone").waitFor();
  await seen(page, "groups", wrong);

  // Before the first step there is what the nodes were in, of which more may be there.
  await replay.getByRole("button", { name: "The begin" }).click();
  await says.filter({ hasText: "Before the first of 4 operations" }).waitFor();
  await group("till").getByText("there may be more").waitFor();
  await group("shop").waitFor({ state: "detached" });
  await replay.getByRole("button", { name: "One step on" }).click();
  await says.filter({ hasText: "new_s_group(shop, [a@h,b@h]) by client at a@h" }).waitFor();
  await group("shop").getByText("a@h").waitFor();
  await page.waitForURL(/moment=\d+/);
  await replay.getByRole("slider").focus();
  await page.keyboard.press("ArrowRight");
  await group("till").getByText("1 name (+1), and those of before").waitFor();
  await replay.getByRole("button", { name: "Play" }).click();
  await says.filter({ hasText: "4 of 4" }).waitFor();
  await replay.getByRole("button", { name: "Play" }).waitFor();
  const rows = replay.getByRole("table");
  await rows.getByText("add_nodes(shop, [b@h])").click();
  await says.filter({ hasText: "add_nodes(shop, [b@h])" }).waitFor();

  // Without names there is one less to go through.
  await replay.getByRole("button", { name: "Names, too" }).click();
  await replay.getByRole("button", { name: "One step back" }).click();
  await says.filter({ hasText: "1 of 4" }).waitFor();
  await replay.getByRole("button", { name: "Names, too" }).click();

  // Marks on the time line, which can be taken away.
  await page.getByTestId("profile-marks").filter({ hasText: "4 operations on groups" }).waitFor();
  const marks = page.getByRole("button", { name: "group operations" });
  await marks.click();
  await page.getByTestId("profile-marks").waitFor({ state: "hidden" });
  await marks.click();
  await page.getByTestId("profile-marks").filter({ hasText: "4 operations on groups" }).waitFor();
  await tabs.getByRole("button", { name: "Processes" }).click();
}

/** Messages over gateways: whereto, by which ways, and what was not delivered. */
async function routed(page, tabs, wrong) {
  await tabs.getByRole("button", { name: "Routed" }).click();
  const card = page.getByTestId("profile-routed");
  await card
    .getByText(/^3 sent \(\d+ B\), 3 of them first over g@h; 2 times passed on, 0 delivered/)
    .waitFor();
  for (const [at, row] of ["a@hshoptillg@h3", "c@hb@ha@h2", "shopnobodyb@hno_name1"].entries())
    await card.getByRole("table").nth(at).getByRole("row").filter({ hasText: row }).waitFor();
  await seen(page, "routed messages", wrong);
  await tabs.getByRole("button", { name: "Processes" }).click();
}
