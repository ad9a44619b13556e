// SPDX-License-Identifier: Apache-2.0
// Somebody looks at the processes of a node and goes on to one, traces calls and stops that; the audit log has it.
export default async function actions(stage) {
  const [node] = stage.cluster.nodes;
  const page = await stage.open(`#/actions/processes?on=${encodeURIComponent(`node:${node}`)}`);
  const answer = (state) => page.locator(`[data-testid=answer][data-state=${state}]`);
  await page.locator(`[data-testid=where] option[value="node:${node}"]`).waitFor({
    state: "attached",
    timeout: 60_000,
  });

  // By keyboard alone.
  await page.getByTestId("arg-filter").fill("code_server");
  await page.keyboard.press("Enter");
  const found = answer("done").getByRole("button", { name: /^<0\./ });
  await found.first().waitFor({ timeout: 60_000 });
  await answer("done").getByText("code_server").first().waitFor();
  await found.first().focus();
  await page.keyboard.press("Enter");
  await page.getByTestId("arg-pid").waitFor();
  stage.must(
    (await page.getByTestId("arg-pid").inputValue()).startsWith("<0."),
    "the process is not taken along",
  );

  await page.getByTestId("action").selectOption("trace_calls");
  await page.getByTestId("arg-module").fill("gen_server");
  await page.getByTestId("arg-function").fill("no_such_function");
  await page.getByTestId("run").click();
  await answer("done").getByText("is called no_such_function").waitFor({ timeout: 60_000 });
  await page.getByTestId("arg-function").fill("enter_loop");
  await page.getByTestId("arg-for_s").fill("60");
  await page.getByTestId("run").click();
  await answer("running").getByTestId("stop").click({ timeout: 60_000 });
  await answer("stopped").waitFor({ timeout: 60_000 });
  await page.getByTestId("requests").getByText("stopped").first().waitFor({ timeout: 60_000 });

  await answer("stopped").getByText("audit log").click();
  const rows = page.locator(".page-audit tbody tr[data-id]");
  for (const result of ["begun", "stopped"])
    await rows.getByText(result, { exact: true }).first().waitFor({ timeout: 60_000 });
  await rows.first().click();
  await page.locator(".page-audit .chosen").getByText(node).waitFor();
}
