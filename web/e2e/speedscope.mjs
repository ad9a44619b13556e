// SPDX-License-Identifier: Apache-2.0
// Opens a profile in speedscope itself, and looks whether it lists these functions:
//   toolchain/web --run node e2e/speedscope.mjs FILE FUNCTION ... [--picture PNG]
// The tool comes from the registry that npm is set up with, into a folder that goes when this ends; the status is 3
// where it cannot be had.
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { extname, join, normalize } from "node:path";
import { parseArgs } from "node:util";
import { launch } from "./browser.mjs";

const VERSION = "speedscope@1.25.0";
const TYPES = {
  ".html": "text/html",
  ".css": "text/css",
  ".js": "text/javascript",
  ".json": "application/json",
};

const { positionals, values } = parseArgs({
  allowPositionals: true,
  options: { picture: { type: "string" } },
});
const [file, ...functions] = positionals;
if (file === undefined || functions.length === 0) {
  console.error(
    "usage: toolchain/web --run node e2e/speedscope.mjs FILE FUNCTION ... [--picture PNG]",
  );
  process.exit(2);
}

const folder = mkdtempSync(join(tmpdir(), "sderl-speedscope-"));
try {
  const at = { cwd: folder, encoding: "utf8", stdio: ["ignore", "pipe", "inherit"] };
  const archive = fetched(at);
  if (archive === null) process.exitCode = 3;
  else {
    execFileSync("tar", ["-xzf", archive], at);
    process.exitCode = await look(join(folder, "package/dist/release"));
  }
} finally {
  rmSync(folder, { recursive: true, force: true });
}

/** The file of the package; nothing where it is not to be had, as without a network. */
function fetched(at) {
  try {
    return execFileSync("npm", ["pack", "--silent", VERSION], at).trim();
  } catch {
    console.error(`speedscope could not be fetched: npm has no ${VERSION} here`);
    return null;
  }
}

/** Serves the tool and the profile, and opens both: 0 where all functions are listed. */
async function look(tool) {
  const server = createServer((request, response) => {
    const path = normalize(new URL(request.url, "http://localhost").pathname);
    try {
      const body = readFileSync(path === "/profile.json" ? file : join(tool, path));
      response.writeHead(200, {
        "content-type": TYPES[extname(path)] ?? "application/octet-stream",
      });
      response.end(body);
    } catch {
      response.writeHead(404).end();
    }
  });
  await new Promise((listens) => server.listen(0, "127.0.0.1", listens));
  const browser = await launch();
  try {
    const page = await browser.newPage({ viewport: { width: 1280, height: 800 } });
    const wrong = [];
    page.on("pageerror", (error) => wrong.push(String(error)));
    const address = `http://127.0.0.1:${server.address().port}`;
    await page.goto(
      `${address}/index.html#profileURL=${encodeURIComponent(`${address}/profile.json`)}`,
    );
    await page.getByText("Sandwich").click();
    const missing = [];
    for (const name of functions) {
      const listed = page.getByText(name, { exact: true }).first();
      await listed.waitFor({ timeout: 30_000 }).catch(() => missing.push(name));
    }
    if (values.picture !== undefined) await page.screenshot({ path: values.picture });
    for (const text of wrong) console.error(`speedscope: ${text}`);
    for (const name of missing) console.error(`speedscope lists no ${name}`);
    if (missing.length === 0 && wrong.length === 0)
      console.log(`speedscope lists ${functions.join(", ")}`);
    return missing.length + wrong.length === 0 ? 0 : 1;
  } finally {
    await browser.close();
    server.close();
  }
}
