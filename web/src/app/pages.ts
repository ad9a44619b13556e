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
  log: "Log",
  findings: "Findings",
  alarms: "Alarms",
  metrics: "Metrics",
  deployments: "Deployments",
  families: "Families",
  actions: "Actions",
  audit: "Audit",
  profiles: "Profiles",
  profile: "Profile",
  samples: "Samples",
};

export const LOADERS: Record<PageName, () => Promise<{ page: Page }>> = {
  groups: () => import("../pages/groups/page"),
  matrix: () => import("../pages/matrix/page"),
  node: () => import("../pages/node/page"),
  traffic: () => import("../pages/traffic/page"),
  names: () => import("../pages/names/page"),
  events: () => import("../pages/events/page"),
  log: () => import("../pages/log/page"),
  findings: () => import("../pages/findings/page"),
  alarms: () => import("../pages/alarms/page"),
  metrics: () => import("../pages/metrics/page"),
  deployments: () => import("../pages/deployments/page"),
  families: () => import("../pages/families/page"),
  actions: () => import("../pages/actions/page"),
  audit: () => import("../pages/audit/page"),
  profiles: () => import("../pages/profiles/page"),
  profile: () => import("../pages/profile/page"),
  samples: () => import("../pages/samples/page"),
};
