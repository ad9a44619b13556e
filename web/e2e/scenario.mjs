// SPDX-License-Identifier: Apache-2.0
// One scenario of scenarios/, run by sderl_web_browser_SUITE:  node e2e/scenario.mjs NAME
//
// The first line on stdin is what the suite has started: {"link", "url", "token", "nodes", "groups", ...}.
// What the scenario wants done to the cluster it asks for with {"do": WHAT, ...} on stdout, and waits for the
// line {"ok": true, ...} that says it is done. The last line is {"done": true} or {"failed": text}; with $SDERL_SHOTS
// set to a folder, a failure leaves a picture of each page there.
import { createInterface } from "node:readline";
import { join } from "node:path";
import { launch } from "./browser.mjs";

/** What a person would wait for something to appear; a busy machine takes its time. */
const PATIENCE_MS = 60_000;

class Stage {
  errors = [];
  pages = [];
  /** Console errors that a scenario brings about itself. */
  expected = null;

  constructor(browser, cluster, lines) {
    this.browser = browser;
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
   * A fresh browser of a person: nothing kept from the others. By default one who wants little to move, as each picture
   * between two states takes a core that the cluster needs.
   */
  async person(options = {}) {
    const context = await this.browser.newContext({
      viewport: { width: 1280, height: 800 },
      reducedMotion: "reduce",
      ...options,
    });
    context.setDefaultTimeout(PATIENCE_MS);
    const page = await context.newPage();
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

  /** Everybody closes the browser. */
  async leave() {
    for (const page of this.pages.splice(0)) await page.context().close();
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

const name = process.argv[2];
const input = createInterface({ input: process.stdin, crlfDelay: Infinity })[
  Symbol.asyncIterator
]();
const cluster = JSON.parse((await input.next()).value);
const browser = await launch();
const stage = new Stage(browser, cluster, input);
let last;
try {
  const { default: scenario } = await import(`./scenarios/${name}.mjs`);
  await scenario(stage);
  last =
    stage.errors.length === 0
      ? { done: true }
      : { failed: `errors in the browser:\n${stage.errors.join("\n")}` };
} catch (error) {
  last = { failed: `${error.stack ?? error}\n${stage.errors.join("\n")}` };
}
if (last.failed && process.env.SDERL_SHOTS) {
  for (const [i, page] of stage.pages.entries()) {
    await page
      .screenshot({ path: join(process.env.SDERL_SHOTS, `${name}-${i + 1}.png`), timeout: 5000 })
      .catch(() => {});
  }
}
await browser.close();
process.stdout.write(`${JSON.stringify(last)}\n`);
process.exit(0);
