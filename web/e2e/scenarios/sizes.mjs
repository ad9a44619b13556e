// SPDX-License-Identifier: Apache-2.0
// Every page at the size of a desk and of a phone, light and dark: nothing sticks out, all texts can be read.
const SIZES = [
  { viewport: { width: 1280, height: 800 } },
  { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true, deviceScaleFactor: 2 },
];

export default async function sizes(stage) {
  const routes = [
    "#/groups",
    "#/matrix",
    `#/node/${encodeURIComponent(stage.cluster.nodes[0])}`,
    "#/traffic",
    "#/names?group=red",
    "#/events",
    "#/findings",
    "#/alarms",
    "#/metrics",
  ];
  const wrong = [];
  for (const size of SIZES) {
    const grounds = new Set();
    for (const colorScheme of ["light", "dark"]) {
      const page = await stage.open("#/groups", { ...size, colorScheme });
      for (const route of routes) {
        const what = `${route} at ${size.viewport.width} pixels, ${colorScheme}`;
        await page.evaluate((hash) => (location.hash = hash), route);
        await page
          .locator(`.page-${/#\/(\w+)/.exec(route)[1]}`)
          .getByText(/\w/)
          .first()
          .waitFor({ state: "attached" });
        const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
        if (wide > 1) wrong.push(`${what}: ${wide} pixels wider than the screen`);
        const faint = await page.evaluate(unreadable);
        if (faint.length > 0)
          wrong.push(`${what}: hard to read: ${[...new Set(faint)].slice(0, 8).join("; ")}`);
      }
      if (size.hasTouch) {
        await page.getByRole("button", { name: "Menu" }).tap();
        await page.getByTestId("nav-traffic").tap();
        await page.locator(".page-traffic").waitFor();
      }
      grounds.add(await page.evaluate(() => getComputedStyle(document.body).backgroundColor));
      await page.context().close();
      stage.pages.pop();
    }
    if (grounds.size !== 2) wrong.push("light and dark look the same");
  }
  stage.must(wrong.length === 0, wrong.join("\n"));
}

/** Texts whose contrast with what is behind them is below 4.5 (3 for large ones), WCAG 2.1 1.4.3. */
function unreadable() {
  const channels = (color) => {
    const made = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
    made.fillStyle = color;
    made.fillRect(0, 0, 1, 1);
    return made.getImageData(0, 0, 1, 1).data;
  };
  const cache = new Map();
  const rgba = (color) => cache.get(color) ?? cache.set(color, channels(color)).get(color);
  const over = (top, ground) => {
    const a = top[3] / 255;
    return [0, 1, 2].map((i) => top[i] * a + ground[i] * (1 - a));
  };
  const luminance = (c) => {
    const [r, g, b] = [0, 1, 2]
      .map((i) => c[i] / 255)
      .map((v) => (v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ground = (element) => {
    const layers = [];
    for (let e = element; e !== null; e = e.parentElement)
      layers.push(rgba(getComputedStyle(e).backgroundColor));
    return layers.reverse().reduce((under, layer) => over(layer, under), [255, 255, 255]);
  };
  const found = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node !== null; node = walker.nextNode()) {
    const element = node.parentElement;
    if (
      node.data.trim() === "" ||
      element === null ||
      element.closest(
        "svg, canvas, :disabled, [aria-disabled=true], .visually-hidden, .skip, option",
      )
    )
      continue;
    if (!element.checkVisibility({ opacityProperty: true, visibilityProperty: true })) continue;
    const style = getComputedStyle(element);
    const under = ground(element);
    const [a, b] = [luminance(over(rgba(style.color), under)), luminance(under)];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    const large =
      parseFloat(style.fontSize) >= 24 ||
      (parseFloat(style.fontSize) >= 18.66 && Number(style.fontWeight) >= 700);
    if (ratio < (large ? 3 : 4.5))
      found.push(`"${node.data.trim().slice(0, 30)}" ${ratio.toFixed(1)}`);
  }
  return found;
}
