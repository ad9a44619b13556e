// SPDX-License-Identifier: Apache-2.0
// The pages there are; each is fetched when it is first opened.
import type { Page } from "./ctx";
import type { PageName } from "./router";

export const TITLES: Record<PageName, string> = {
  groups: "Groups",
  matrix: "Matrix",
  node: "Nodes",
  traffic: "Traffic",
  names: "Names",
  events: "Events",
  findings: "Findings",
};

export const LOADERS: Record<PageName, () => Promise<{ page: Page }>> = {
  groups: () => import("../pages/groups/page"),
  matrix: () => import("../pages/matrix/page"),
  node: () => import("../pages/node"),
  traffic: () => import("../pages/traffic"),
  names: () => import("../pages/names"),
  events: () => import("../pages/events"),
  findings: () => import("../pages/findings"),
};
