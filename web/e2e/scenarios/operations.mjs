// SPDX-License-Identifier: Apache-2.0
// A service of operations brings a cluster up, and the pages show it: how far it is, what is left, its history, what a
// file would change, and what a program asks over REST. With all that they have to show they are looked at on a desk and
// on a phone, light and dark, and used without a mouse.
import { faults } from "../readable.mjs";

const PHONE = {
  viewport: { width: 390, height: 844 },
  hasTouch: true,
  isMobile: true,
  deviceScaleFactor: 2,
};

export default async function operations(stage) {
  const page = await stage.open("#/deployments");
  const main = page.getByRole("main");
  await main.getByText(/no service of operations runs in/i).waitFor();
  const phone = await stage.open("#/deployments", PHONE);
  const hand = phone.getByRole("main");
  const wrong = [];
  const look = async (what) => {
    for (const [one, where] of [
      [page, "on a desk"],
      [phone, "on a phone"],
    ])
      for (const colorScheme of ["dark", "light"]) {
        await one.emulateMedia({ colorScheme, reducedMotion: "reduce" });
        wrong.push(...(await faults(one, `${what} ${where}, ${colorScheme}`)));
      }
  };

  // It goes on without a load of the page. No node starts until it is let.
  await stage.act("ops", { args: ["apply", "--no-wait", "FILE"] });
  await main.getByText("Cluster shop, revision 1: working").waitFor();
  const deployment = main.getByTestId("ops-deployment");
  await deployment.getByText(/^\d+ of \d+ steps are done\.$/).waitFor();
  await deployment.getByRole("progressbar").waitFor();
  const underWay = deployment.getByRole("list", { name: "Under way" });
  await underWay.getByText(/web1/).waitFor();
  await hand.getByRole("list", { name: "Under way" }).getByText(/web1/).waitFor();
  await look("a deployment at work");
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
  await hand.getByTestId("plan-text").fill(text);
  await hand.getByTestId("plan-go").tap();
  await hand.getByText(/^It would take \d+ steps?\.$/).waitFor();
  await look("a plan and a refusal");

  // By the keyboard alone, from the page's own key on.
  await page.evaluate(() => document.activeElement?.blur());
  await page.keyboard.press("d");
  await tabTo(stage, page, { testid: "plan-text" });
  await page.keyboard.press("ControlOrMeta+a");
  await page.keyboard.insertText(text);
  await tabTo(stage, page, { testid: "plan-go" });
  await page.keyboard.press("Enter");
  await plan.getByText(/^It would take \d+ steps?\.$/).waitFor();
  await tabTo(stage, page, { label: "What would change" });
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

  await page.evaluate(() => document.activeElement?.blur());
  await page.keyboard.press("a");
  await page.waitForURL(/#\/families/);
  const families = main.getByRole("table", { name: "Families" });
  const web = families.getByRole("row").filter({ hasText: "web" });
  await web.filter({ hasText: "3" }).waitFor();
  await begun("instances/web2/drain", {});
  await web.filter({ hasText: /drained/ }).waitFor();
  await phone.evaluate(() => (location.hash = "#/families"));
  const inHand = hand.getByRole("table", { name: "Families" }).getByRole("row");
  await inHand.filter({ hasText: /drained/ }).waitFor();
  await look("families");
  // One of them is chosen and left again.
  await tabTo(stage, page, { row: "web" });
  await page.keyboard.press("Enter");
  await main.getByRole("heading", { name: "Instances of web" }).waitFor();
  await page.waitForURL(/#\/families\/web/);
  await tabTo(stage, page, { text: "Show all instances" });
  await page.keyboard.press("Enter");
  await main.getByRole("heading", { name: "Instances", exact: true }).waitFor();
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
  stage.must(wrong.length === 0, wrong.join("\n"));
}

/** Tab until it has the focus, which one sees. */
async function tabTo(stage, page, wanted) {
  for (let i = 0; i < 100; i++) {
    await page.keyboard.press("Tab");
    const at = await page.evaluate(({ testid, label, row, text }) => {
      const e = document.activeElement;
      const is =
        (testid !== undefined && e?.dataset.testid === testid) ||
        (label !== undefined && e?.getAttribute("aria-label") === label) ||
        (row !== undefined && e?.dataset.id === row) ||
        (text !== undefined && e?.textContent === text);
      if (!is) return null;
      const style = getComputedStyle(e);
      return {
        ring:
          (style.outlineStyle !== "none" && parseFloat(style.outlineWidth) > 0) ||
          style.boxShadow !== "none",
      };
    }, wanted);
    if (at === null) continue;
    return stage.must(at.ring, `one does not see that this is focused: ${JSON.stringify(wanted)}`);
  }
  throw new Error(`the keyboard does not come to ${JSON.stringify(wanted)}`);
}
