// SPDX-License-Identifier: Apache-2.0
// One browser for all scenarios of sderl_web_browser_SUITE, as a start takes longer than many of them: its address is
// the only line on stdout, and it ends when stdin does.
import { share } from "./browser.mjs";

const browser = await share();
process.stdout.write(`${browser.wsEndpoint()}\n`);
process.stdin.resume();
process.stdin.on("end", async () => {
  await browser.close();
  process.exit(0);
});
