// SPDX-License-Identifier: Apache-2.0
// What a person cannot read on a page.

/** All that is wrong with a page as it is now; `what` says which one that is. */
export async function faults(page, what) {
  const wrong = [];
  const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  if (wide > 1) wrong.push(`${what}: ${wide} pixels wider than the screen`);
  for (const [how, look] of [
    ["cut off", cutOff],
    ["hard to read", unreadable],
  ]) {
    const found = await page.evaluate(look);
    if (found.length > 0)
      wrong.push(`${what}: ${how}: ${[...new Set(found)].slice(0, 8).join("; ")}`);
  }
  return wrong;
}

/** A desk and a phone, of which one is light and the other dark. */
export const LOOKS = [
  { viewport: { width: 1440, height: 900 }, colorScheme: "light" },
  {
    viewport: { width: 390, height: 844 },
    colorScheme: "dark",
    hasTouch: true,
    isMobile: true,
    deviceScaleFactor: 2,
  },
];

/** Notes in `wrong` what sticks out of a page, and what cannot be read on it. */
export async function seen(page, what, wrong) {
  const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  if (wide > 1) wrong.push(`${what}: ${wide} pixels wider than the screen`);
  const faint = await page.evaluate(unreadable);
  if (faint.length > 0) wrong.push(`${what}: hard to read: ${[...new Set(faint)].join("; ")}`);
}

/** Opens `link` with each of the looks, plays it, and looks at the end of it in the other theme. */
export async function playedWithLooks(stage, link, played) {
  const wrong = [];
  const grounds = new Set();
  const ground = () => getComputedStyle(document.body).backgroundColor;
  for (const look of LOOKS) {
    const page = await stage.person(look);
    await page.goto(link);
    await played(stage, page, wrong);
    grounds.add(await page.evaluate(ground));
    const colorScheme = look.colorScheme === "light" ? "dark" : "light";
    await page.emulateMedia({ colorScheme });
    await seen(page, `${look.viewport.width} pixels, the other theme`, wrong);
    grounds.add(await page.evaluate(ground));
  }
  if (grounds.size !== 2) wrong.push("light and dark look the same");
  stage.must(wrong.length === 0, wrong.join("\n"));
}

// Run in a page:

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

/** Texts that are cut off, and of which nothing tells the rest: no title, and nothing to scroll. */
function cutOff() {
  const found = [];
  for (const element of document.body.querySelectorAll("*")) {
    const own = [...element.childNodes].some(
      (node) => node.nodeType === Node.TEXT_NODE && node.data.trim() !== "",
    );
    // What is in a cell may be a link or a mark, which the cell cuts off.
    const cell =
      element.matches("td, th") &&
      element.textContent.trim() !== "" &&
      element.querySelector("[title]") === null;
    if (!own && !cell) continue;
    if (element.closest("svg, canvas, .visually-hidden, .skip, option, [title]")) continue;
    if (!element.checkVisibility({ opacityProperty: true, visibilityProperty: true })) continue;
    const hides = ["hidden", "clip"].includes(getComputedStyle(element).overflowX);
    if (hides && element.scrollWidth > element.clientWidth + 1)
      found.push(`"${element.textContent.trim().slice(0, 30)}"`);
  }
  return found;
}
