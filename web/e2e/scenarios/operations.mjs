// SPDX-License-Identifier: Apache-2.0
// A service of operations brings a cluster up, and the pages show it: how far it is, what is left, its history, what a
// file would change, and what a program asks over REST.
export default async function operations(stage) {
  const page = await stage.open("#/deployments");
  const main = page.getByRole("main");
  await main.getByText(/no service of operations runs in/i).waitFor();

  // It goes on without a load of the page. No node starts until it is let.
  await stage.act("ops", { args: ["apply", "--no-wait", "FILE"] });
  await main.getByText("Cluster shop, revision 1: working").waitFor();
  const deployment = main.getByTestId("ops-deployment");
  await deployment.getByText(/^\d+ of \d+ steps are done\.$/).waitFor();
  await deployment.getByRole("progressbar").waitFor();
  const underWay = deployment.getByRole("list", { name: "Under way" });
  await underWay.getByText(/web1/).waitFor();
  await stage.act("let_start");
  await deployment.getByText("All is as the file says.").waitFor();
  await deployment.getByRole("progressbar").waitFor({ state: "hidden" });
  await underWay.waitFor({ state: "hidden" });
  const history = main.getByRole("table", { name: "History" });
  const revision = (n) => history.getByRole("row").filter({ hasText: new RegExp(`^${n}[^\\d]`) });
  await history.getByRole("row").filter({ hasText: /apply/ }).filter({ hasText: "good" }).waitFor();

  // What a file would change; and one that is none. (The browser tells what is refused.)
  stage.expected = /status of 40[04]/;
  const plan = main.getByTestId("ops-plan");
  const { text } = await stage.act("ops_text", { count: 3 });
  for (const [file, says] of [
    ["{", /json|line|end/i],
    [text.replace('"count":3', '"count":0'), /count/],
  ]) {
    await plan.getByTestId("plan-text").fill(file);
    await plan.getByTestId("plan-go").click();
    await plan.getByRole("alert").filter({ hasText: says }).waitFor();
  }
  await plan.getByTestId("plan-text").fill(text);
  await plan.getByTestId("plan-go").click();
  await plan.getByText(/^It would take \d+ steps?\.$/).waitFor();
  await plan
    .getByRole("list", { name: /^What would change/ })
    .getByText(/web3/)
    .first()
    .waitFor();
  stage.must((await revision(2).count()) === 0, "a plan has made a revision");

  // What a program asks for is done, and the page tells whose it was.
  const post = (path, body) =>
    page.evaluate(
      async ([path, body, token]) => {
        const answer = await fetch(`api/v1/operations/${path}`, {
          method: "POST",
          headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
          body: JSON.stringify(body),
        });
        return { status: answer.status, ...(await answer.json()) };
      },
      [path, body, stage.cluster.token],
    );
  const begun = async (path, body, status = 202) => {
    const answer = await post(path, body);
    stage.must(answer.status === status, `${path}: ${JSON.stringify(answer)}`);
    return answer;
  };
  const scaled = await begun("families/web/scale", { count: 3 });
  stage.must(scaled.revision === 2, `scale: ${JSON.stringify(scaled)}`);
  await history
    .getByRole("row")
    .filter({ hasText: "scale web to 3" })
    .filter({ hasText: "rest:main" })
    .waitFor();
  await main.getByText("Cluster shop, revision 2: steady").waitFor();
  await begun("pause", {}, 200);
  await deployment.getByText(/^Paused: nothing is begun/).waitFor();
  await begun("resume", {}, 200);
  await deployment.getByText("All is as the file says.").waitFor();
  const refused = await begun("families/nosuch/scale", { count: 3 }, 404);
  stage.must(/nosuch/.test(refused.detail), `the refusal: ${refused.detail}`);

  await page.getByTestId("nav-families").click();
  const families = main.getByRole("table", { name: "Families" });
  const web = families.getByRole("row").filter({ hasText: "web" });
  await web.filter({ hasText: "3" }).waitFor();
  await begun("instances/web2/drain", {});
  await web.filter({ hasText: /drained/ }).waitFor();
  await begun("instances/web2/undrain", {});
  await web.filter({ hasText: /drained/ }).waitFor({ state: "detached" });

  // The file on the machine still says two.
  const applied = await begun("apply", {});
  stage.must(applied.file?.endsWith("/shop.json"), `apply: ${JSON.stringify(applied)}`);
  await begun("rollback", { revision: 2 });
  await page.getByTestId("nav-deployments").click();
  await history.getByRole("row").filter({ hasText: "roll back to 2" }).waitFor();
  // Who did what, what came of it, and the steps that it took.
  const record = main.getByTestId("ops-record");
  const entry = (what) =>
    record.getByRole("table", { name: "Record" }).getByRole("row").filter({ hasText: what });
  await entry("start web1").filter({ hasText: "done" }).first().waitFor();
  await record.getByTestId("record-kind").selectOption("request");
  await entry("undrain web2")
    .filter({ hasText: "rest:main" })
    .filter({ hasText: "done" })
    .waitFor();
  await entry("roll back to 2 (revision 4)").filter({ hasText: "done" }).waitFor();
  await entry("start web1").first().waitFor({ state: "detached" });
  await main.getByText("Cluster shop, revision 4: steady").waitFor();
  await stage.act("ops", { args: ["destroy", "--yes"] });
  await main.getByText("Nothing of the cluster is left.").waitFor();
}
