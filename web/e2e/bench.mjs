// SPDX-License-Identifier: Apache-2.0
// What "bin/sderl bench dashboard" measures in a browser. Steps, as lines on stdin (see browser.mjs):
//   {"op":"paint","url":U}                  loads it with an empty cache
//   {"op":"open","url":U}                   loads the page that the next steps are about
//   {"op":"rate","how":"idle"|"pan","seconds":S}
//   {"op":"memory"}
import { drawn, frameRate, launch, serve } from "./browser.mjs";

const browser = await launch();
const viewport = { width: 1280, height: 800 };
let page = null;

async function paint({ url }) {
  const context = await browser.newContext({ viewport });
  try {
    const fresh = await context.newPage();
    await fresh.goto(url);
    await drawn(fresh);
    return await fresh.evaluate(() => ({
      first_paint_ms: window.sderl.firstPaintMs,
      contentful_ms: performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? null,
      nodes: window.sderl.nodes().length,
    }));
  } finally {
    await context.close();
  }
}

async function open({ url }) {
  const context = await browser.newContext({ viewport });
  page = await context.newPage();
  await page.goto(url);
  await drawn(page);
  // The picture finds its shape first.
  await page.waitForFunction(() => window.sderl.frames >= 15, null, { timeout: 30_000 });
  return {};
}

/** The hand holds the picture and draws it round in circles. */
async function pan(until) {
  const box = await page.locator("canvas").first().boundingBox();
  const [x, y, r] = [
    box.x + box.width / 2,
    box.y + box.height / 2,
    Math.min(box.width, box.height) / 5,
  ];
  // Empty ground: what begins on a node moves that node.
  const from = await page.evaluate(
    ([x, y, r]) => {
      const nodes = window.sderl.nodes();
      for (let i = 0; i < 400; i++) {
        const a = i * 2.4;
        const p = [
          x + r * Math.sqrt(i / 400) * Math.cos(a) * 2,
          y + r * Math.sqrt(i / 400) * Math.sin(a) * 2,
        ];
        if (nodes.every((n) => Math.hypot(n.x - p[0], n.y - p[1]) > 25)) return p;
      }
      return [x, y];
    },
    [x, y, r],
  );
  await page.mouse.move(from[0], from[1]);
  await page.mouse.down();
  for (let i = 0; performance.now() < until; i++) {
    await page.mouse.move(from[0] + r * Math.sin(i / 15), from[1] + r * (1 - Math.cos(i / 15)));
    // Hands do not tell more than screens show.
    await new Promise((done) => setTimeout(done, 12));
  }
  await page.mouse.up();
}

async function rate({ how, seconds }) {
  const counting = frameRate(page, seconds);
  if (how === "pan") await pan(performance.now() + seconds * 1000);
  const { rate: frames_per_s, longest: longest_ms } = await counting;
  return { how, frames_per_s, longest_ms };
}

async function memory() {
  const devtools = await page.context().newCDPSession(page);
  await devtools.send("HeapProfiler.collectGarbage");
  const { usedSize } = await devtools.send("Runtime.getHeapUsage");
  await devtools.detach();
  return { heap_bytes: usedSize };
}

await serve({ paint, open, rate, memory }, () => browser.close());
