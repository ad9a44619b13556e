// SPDX-License-Identifier: Apache-2.0
/** The pages of a cluster, in the order in which the header has them. */
export const PAGES = [
  "groups",
  "matrix",
  "node",
  "traffic",
  "names",
  "events",
  "log",
  "findings",
  "alarms",
  "metrics",
  "deployments",
  "families",
  "actions",
  "audit",
  "profiles",
];

/** Goes to a route in a page that is open, and waits until there is a text. */
export async function goTo(page, route) {
  await page.evaluate((hash) => (location.hash = hash), route);
  await page
    .locator(`.page-${/#\/(\w+)/.exec(route)[1]}`)
    .getByText(/\w/)
    .first()
    .waitFor({ state: "attached" });
}
