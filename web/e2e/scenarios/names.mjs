// SPDX-License-Identifier: Apache-2.0
// A name is found with the look-up box: who has it, and where.
export default async function names(stage) {
  const { nodes } = stage.cluster;
  const { pid } = await stage.act("register", {
    group: "red",
    node: nodes[1],
    name: "alice_of_the_tests",
  });
  const page = await stage.open("#/names?group=red");
  const main = page.getByRole("main");
  await main.getByText("alice_of_the_tests").first().waitFor();

  const box = main.getByRole("searchbox").or(main.getByRole("textbox")).first();
  await box.fill("alice_of_the_tests");
  await box.press("Enter");
  await main.getByText(nodes[1]).first().waitFor();
  // As that node prints it, though another member may have been asked.
  stage.must(pid.startsWith("<0."), "the suite told the owner");
  await main.getByText(pid, { exact: true }).first().waitFor();

  await box.fill("nobody_has_this_name");
  await box.press("Enter");
  await main
    .getByText(/no name|not found|nobody|nothing/i)
    .first()
    .waitFor();
}
