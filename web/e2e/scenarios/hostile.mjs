// SPDX-License-Identifier: Apache-2.0
// Names that would run as a program, look like another one or break a page are shown as the text that they are.
import { goTo, PAGES } from "../pages.mjs";

const GROUPS = [
  "<img src=x onerror=window.taken=1>",
  "\u202eder\u2066\u200b",
  "__proto__",
  `"><script>window.taken=1</script>${"w".repeat(60)}`,
];
const NAMES = [
  "<svg onload=window.taken=1>",
  "constructor",
  "red\u202e\u00ad",
  "'];window.taken=1;//",
];
const SIZES = [
  { width: 1440, height: 900 },
  { width: 390, height: 844 },
];

export default async function hostile(stage) {
  const { nodes } = stage.cluster;
  for (const [i, group] of GROUPS.entries()) {
    await stage.act("new_group", { group, nodes: [nodes[6], nodes[3]] });
    await stage.act("register", { group, node: nodes[6], name: NAMES[i] });
  }
  const wrong = [];
  for (const viewport of SIZES) {
    const page = await stage.open("#/groups", { viewport });
    await stage.until(
      page,
      "all of them",
      (count) => (window.sderl?.groups().length ?? 0) === count,
      GROUPS.length + Object.keys(stage.cluster.groups).length,
    );
    // Topologies have the names as Erlang prints them.
    const shown = await page.evaluate(() => window.sderl.groups().map(({ name }) => name));
    const made = shown.filter((name) => !Object.hasOwn(stage.cluster.groups, name));
    stage.must(made.length === GROUPS.length, `shown: ${made.join(" ")}`);
    const routes = PAGES.map((one) => `#/${one}`);
    for (const name of made.map(encodeURIComponent))
      routes.push(
        `#/groups/${name}`,
        `#/matrix/${name}?to=red`,
        `#/names?group=${name}`,
        `#/traffic?by=group&row=${name}`,
        `#/events?group=${name}`,
      );
    routes.push(
      `#/node/${encodeURIComponent("<b>nobody\u202e</b>")}`,
      "#/groups/%3Cb%3Enone%E2%80%AE",
    );
    for (const route of routes) {
      await goTo(page, route);
      if (route.startsWith("#/names?"))
        await page
          .getByRole("main")
          .getByText(/onload|constructor|red|window/)
          .first()
          .waitFor();
      if (route === `#/names?group=${encodeURIComponent(made.find((one) => /202e/i.test(one)))}`)
        stage.must(
          /202e/i.test(await page.getByRole("main").innerText()),
          "a mark that turns the direction is shown by its number",
        );
      const seen = await page.evaluate(looked);
      for (const what of seen) wrong.push(`${route} at ${viewport.width}: ${what}`);
    }
    await stage.close(page);
  }
  for (const group of GROUPS) await stage.act("delete_group", { group, node: nodes[6] });
  stage.must(wrong.length === 0, wrong.join("\n"));
}

/** What such a name has done to the page. */
function looked() {
  const wrong = [];
  if (window.taken !== undefined) wrong.push("a name ran as a program");
  if (document.querySelector("main img, main script, main [onload], main [onerror]") !== null)
    wrong.push("a name became an element");
  const hidden = /[\u200b-\u200f\u202a-\u202e\u2060-\u2069\u00ad]/;
  const texts = [document.title, document.body.innerText];
  for (const element of document.querySelectorAll("[title], [aria-label]"))
    texts.push(element.title, element.getAttribute("aria-label") ?? "");
  const bad = texts.find((text) => hidden.test(text));
  if (bad !== undefined) {
    const at = bad.search(hidden);
    wrong.push(`what nobody sees is shown as it is: ${escape(bad.slice(at - 30, at + 10))}`);
  }
  const wide = document.documentElement.scrollWidth - innerWidth;
  if (wide > 1) wrong.push(`${wide} pixels wider than the screen`);
  return wrong;
}
