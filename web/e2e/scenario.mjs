// SPDX-License-Identifier: Apache-2.0
// Scenarios of scenarios/, one after the other, run by sderl_web_browser_SUITE:  node e2e/scenario.mjs
//
// A line on stdin begins one: {"play": NAME, "shots": FOLDER, ...} and what the suite has started: "link", "url",
// "token", "nodes", "groups", .... What the scenario wants done to the cluster it asks for with {"do": WHAT, ...} on
// stdout, and waits for the line {"ok": true, ...} that says it is done. Its last line is {"done": true} or
// {"failed": text}; a failure leaves a picture of each page in the folder. When stdin ends the browser does too.
//
// Starting a browser, a process for a page and a program takes longer than most scenarios. So there is one browser, and
// pages share a process where nothing that they keep matters.
import { createInterface } from "node:readline";
import { join } from "node:path";
import { launch } from "./browser.mjs";

/** What a person would wait for something to appear; a busy machine takes its time. */
const PATIENCE_MS = 60_000;
const LOOK = {
  viewport: { width: 1280, height: 800 },
  colorScheme: "light",
  reducedMotion: "reduce",
};

class Stage {
  errors = [];
  pages = [];
  /** Console errors that a scenario brings about itself. */
  expected = null;

  constructor(browser, home, cluster, lines) {
    this.browser = browser;
    this.home = home;
    this.cluster = cluster;
    this.lines = lines;
  }

  /** The suite does it. */
  async act(what, args = {}) {
    process.stdout.write(`${JSON.stringify({ do: what, ...args })}\n`);
    const { value, done } = await this.lines.next();
    if (done) throw new Error("the suite has gone");
    const answer = JSON.parse(value);
    if (!answer.ok) throw new Error(`${what}: ${answer.error}`);
    return answer;
  }

  /**
   * A page of a person. It may share what is kept beside a page (localStorage, cookies) with other pages of the scenario,
   * but with none of other scenarios; `alone`, it has all for itself. By default for one who wants little to move, as
   * each picture between two states takes a core that the cluster needs.
   */
  async person({ alone = false, ...options } = {}) {
    const { viewport, colorScheme, reducedMotion, ...own } = { ...LOOK, ...options };
    const apart = alone || Object.keys(own).length > 0;
    const look = { colorScheme, reducedMotion };
    const context = apart
      ? await this.browser.newContext({ viewport, ...look, ...own })
      : this.home;
    context.setDefaultTimeout(PATIENCE_MS);
    const page = await context.newPage();
    if (!apart) {
      await page.setViewportSize(viewport);
      await page.emulateMedia(look);
    }
    const note = (text) => {
      if (!this.expected?.test(text)) this.errors.push(text);
    };
    page.on("console", (message) => {
      if (message.type() === "error" || message.type() === "warning")
        note(`console: ${message.text()}`);
    });
    page.on("pageerror", (error) => note(`uncaught: ${error.stack ?? error}`));
    page.on("requestfailed", (request) => {
      const why = request.failure()?.errorText;
      if (why !== "net::ERR_ABORTED") note(`request: ${request.url()}: ${why}`);
    });
    this.pages.push(page);
    return page;
  }

  /** The page of a person who opened the printed address, at a route such as "#/traffic". */
  async open(route = "", options = {}) {
    const page = await this.person(options);
    await page.goto(this.address(route));
    await this.connected(page);
    return page;
  }

  /** A person closes the page, and nothing is kept. */
  async close(page) {
    this.pages = this.pages.filter((one) => one !== page);
    if (page.context() !== this.home) return page.context().close();
    await page.evaluate(() => localStorage.clear());
    await page.close();
  }

  /** Everybody does. */
  async leave() {
    for (const page of [...this.pages]) await this.close(page);
    await this.home.clearCookies();
  }

  address(route = "") {
    return route === ""
      ? this.cluster.link
      : `${this.cluster.url}?token=${this.cluster.token}${route}`;
  }

  async connected(page) {
    await page
      .getByTestId("connection")
      .filter({ hasText: /^connected$/i })
      .waitFor();
  }

  /** Waits in the page until fn(arg) is true there; `what` is for the one who reads that it was not. */
  async until(page, what, fn, arg = null, polling = 50) {
    try {
      const options = { timeout: PATIENCE_MS, polling };
      return await (await page.waitForFunction(fn, arg, options)).jsonValue();
    } catch (error) {
      throw new Error(
        `${what}: not seen in ${PATIENCE_MS} ms (${String(error.message).split("\n")[0]})`,
      );
    }
  }

  must(condition, what) {
    if (!condition) throw new Error(what);
  }
}

/** One scenario, and how it ended. */
async function play({ play: name, shots, ...cluster }) {
  const stage = new Stage(browser, home, cluster, lines);
  try {
    const { default: scenario } = await import(`./scenarios/${name}.mjs`);
    await scenario(stage);
    const errors = stage.errors.join("\n");
    await stage.leave();
    return errors === "" ? { done: true } : { failed: `errors in the browser:\n${errors}` };
  } catch (error) {
    for (const [i, page] of stage.pages.entries())
      await page
        .screenshot({ path: join(shots, `${name}-${i + 1}.png`), timeout: 5000 })
        .catch(() => {});
    return { failed: `${error.stack ?? error}\n${stage.errors.join("\n")}` };
  }
}

// All pages with the same storage are in one process, and none is started ahead.
const browser = await launch(["--renderer-process-limit=1"]);
const home = await browser.newContext(LOOK);
const input = createInterface({ input: process.stdin, crlfDelay: Infinity });
// Also while a scenario waits for what does not come.
input.on("close", async () => {
  await browser.close();
  process.exit(0);
});
const lines = input[Symbol.asyncIterator]();
let kept;
for (;;) {
  const { value, done } = await lines.next();
  if (done) break;
  const told = JSON.parse(value);
  // The process of the pages lives as long as one of them.
  if (kept === undefined) {
    kept = await home.newPage();
    await kept.goto(new URL("icon.svg", told.url).href);
  }
  process.stdout.write(`${JSON.stringify(await play(told))}\n`);
}
