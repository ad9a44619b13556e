// SPDX-License-Identifier: Apache-2.0
// All pages and the time bar without a mouse, and one sees where one is.
import { PAGES } from "../pages.mjs";

export default async function keyboard(stage) {
  const page = await stage.open();
  await stage.until(
    page,
    "the cluster",
    (count) => window.sderl?.nodes().length >= count,
    stage.cluster.nodes.length,
  );

  // Through all that can be focused, and back at the beginning: each has a name, and a ring to see it by.
  const seen = [];
  for (let i = 0; i < 60; i++) {
    await page.keyboard.press("Tab");
    const at = await page.evaluate(() => {
      const e = document.activeElement;
      if (e === null || e === document.body) return null;
      const style = getComputedStyle(e);
      const box = e.getBoundingClientRect();
      return {
        name:
          e.getAttribute("aria-label") ?? e.labels?.[0]?.textContent ?? e.textContent?.trim() ?? "",
        tag: e.tagName,
        ring:
          (style.outlineStyle !== "none" && parseFloat(style.outlineWidth) > 0) ||
          style.boxShadow !== "none",
        shown: box.width > 0 && box.height > 0,
      };
    });
    if (at === null) break;
    seen.push(at);
  }
  stage.must(seen.length >= 8, `only ${seen.length} things can be focused`);
  for (const at of seen) {
    stage.must(at.name !== "", `something without a name is focused: ${JSON.stringify(at)}`);
    stage.must(at.ring && at.shown, `one does not see that this is focused: ${JSON.stringify(at)}`);
  }

  // Each page by its number.
  for (const [key, name] of PAGES.entries()) {
    await page.keyboard.press("1234567890dacup"[key]);
    await page.waitForURL(new RegExp(`#/${name}`));
    await page.locator(`[aria-current="page"][data-testid="nav-${name}"]`).waitFor();
  }
  await page.keyboard.press("1");

  // A node is found by any part of its name: Enter goes to it, and again to its page.
  const wanted = stage.cluster.nodes[1];
  await page.waitForURL(/#\/groups/);
  const search = page.getByTestId("search");
  const focused = () =>
    search.evaluate((at) => at === document.activeElement || at.contains(document.activeElement));
  // The page is drawn before it listens: what is typed too early would be keys of other pages.
  const toSearch = async () => {
    await search.waitFor();
    do await page.keyboard.press("/");
    while (!(await focused()));
  };
  await toSearch();
  await page.keyboard.type(wanted.slice(1));
  await page.getByRole("option", { name: wanted }).waitFor();
  await page.keyboard.press("Enter");
  await page.getByTestId("tooltip").filter({ hasText: wanted }).waitFor();
  await page.keyboard.press("Enter");
  await page.waitForURL(/#\/node\//);
  await page.getByTestId("tooltip").waitFor({ state: "detached" });
  // Of several, each in its turn.
  await page.keyboard.press("1");
  await toSearch();
  await page.keyboard.type("127.0.0.1");
  await stage.until(
    page,
    "a list of all",
    () => document.querySelectorAll("[role=option]").length > 5,
  );
  for (const [i, node] of stage.cluster.nodes.slice(0, 3).entries()) {
    await page.keyboard.press("Enter");
    await page
      .locator(`[role=option][aria-selected=true]#search-${i}`)
      .filter({ hasText: node })
      .waitFor();
  }
  await page.keyboard.press("Escape");
  await page.getByRole("listbox", { name: "Found" }).waitFor({ state: "hidden" });

  // A group that is not there is said not to be.
  await page.evaluate(() => (location.hash = "#/groups/nowhere"));
  await page.getByText("There is no group “nowhere”").waitFor();
  await page.evaluate(() => (location.hash = "#/groups"));
  await page.getByText("There is no group “nowhere”").waitFor({ state: "hidden" });
  await page.keyboard.press("1");

  await page.keyboard.press("?");
  const sheet = page.getByRole("dialog");
  await sheet.waitFor();
  await page.keyboard.press("Escape");
  await sheet.waitFor({ state: "hidden" });

  // The focus is on no button, which the space bar would press.
  await page.evaluate(() => document.activeElement?.blur());
  await page.keyboard.press("Space");
  await page.locator('[data-testid="live"][aria-pressed="false"]').waitFor();
  const [held] = [await page.getByTestId("scrub").inputValue()];
  await page.keyboard.press(",");
  await stage.until(
    page,
    "one frame back",
    (t) => Number(document.querySelector('[data-testid="scrub"]').value) < t,
    Number(held),
  );
  await page.keyboard.press("l");
  await page.locator('[data-testid="live"][aria-pressed="true"]').waitFor();
}
