// SPDX-License-Identifier: Apache-2.0
// A node in all its detail, or the list of nodes to choose one from.
import type { MountedPage, Page } from "../../ui/ctx";
import { mountPicker } from "./picker";
import { mountNode } from "./view";
import "../../styles/data.css";
import "./node.css";

export const page: Page = {
  mount(root, ctx) {
    const open = (name: string | null): MountedPage =>
      name === null ? mountPicker(root, ctx) : mountNode(root, ctx, name);
    let name = ctx.route.arg;
    let mounted = open(name);
    return {
      update(change) {
        if (change.has("route") && ctx.route.arg !== name) {
          mounted.destroy();
          name = ctx.route.arg;
          mounted = open(name);
        } else mounted.update?.(change);
      },
      destroy: () => mounted.destroy(),
    };
  },
};
