// SPDX-License-Identifier: Apache-2.0
// The pages there are; each is fetched when it is first opened.
import type { Page } from "../ui/ctx";
import type { PageName } from "../ui/router";

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
  node: () => import("../pages/node/page"),
  traffic: () => import("../pages/traffic/page"),
  names: () => import("../pages/names/page"),
  events: () => import("../pages/events/page"),
  findings: () => import("../pages/findings/page"),
};
