// SPDX-License-Identifier: Apache-2.0
// Every page at the size of a desk and of a phone, light and dark: nothing sticks out or is cut off, all texts can be read.
import { goTo, PAGES } from "../pages.mjs";
import { faults } from "../readable.mjs";

const SIZES = [
  { viewport: { width: 1280, height: 800 } },
  { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true, deviceScaleFactor: 2 },
];

export default async function sizes(stage) {
  const arg = {
    node: `/${encodeURIComponent(stage.cluster.nodes[0])}`,
    names: "?group=red",
  };
  const routes = PAGES.map((page) => `#/${page}${arg[page] ?? ""}`);
  await stage.act("unprobed");
  const wrong = [];
  for (const size of SIZES) {
    const grounds = new Set();
    for (const colorScheme of ["light", "dark"]) {
      const page = await stage.open("#/groups", { ...size, colorScheme });
      // What the numbers are of is said on a phone, too, and a finger is told what it means.
      const source = page.getByTestId("source");
      await source.filter({ hasText: "Some unprobed" }).waitFor();
      // Whoever speaks to the machine says what is to be read there.
      const name = (await source.innerText()).trim();
      await page.getByRole("button", { name, exact: true }).waitFor();
      if (size.hasTouch) {
        await source.tap();
        await page.getByRole("status").filter({ hasText: "only what stock OTP reports" }).waitFor();
      }
      const over = await page.evaluate(crowded);
      if (over > 0)
        wrong.push(`the header at ${size.viewport.width} pixels: ${over} pixels too wide`);
      for (const route of routes) {
        const what = `${route} at ${size.viewport.width} pixels, ${colorScheme}`;
        await goTo(page, route);
        wrong.push(...(await faults(page, what)));
      }
      if (size.hasTouch) {
        await page.getByRole("button", { name: "Menu" }).tap();
        await page.getByTestId("nav-traffic").tap();
        await page.locator(".page-traffic").waitFor();
      }
      grounds.add(await page.evaluate(() => getComputedStyle(document.body).backgroundColor));
      await stage.close(page);
    }
    if (grounds.size !== 2) wrong.push("light and dark look the same");
  }
  stage.must(wrong.length === 0, wrong.join("\n"));
}

// Run in a page: by how much it is too wide with all that the header may have to say.
function crowded() {
  for (const badge of document.querySelectorAll(".nav .badge")) {
    badge.hidden = false;
    badge.textContent = "128";
  }
  const losses = document.querySelector(".header > .chip-warning");
  losses.hidden = false;
  losses.textContent = losses.title = "12,345 not shown";
  return document.documentElement.scrollWidth - innerWidth;
}
