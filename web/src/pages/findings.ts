// SPDX-License-Identifier: Apache-2.0
import type { Page } from "../app/ctx";
import { emptyState } from "../app/notice";

export const page: Page = {
  title: "findings",
  mount(root) {
    root.append(emptyState("Not built yet", "This page is still to come."));
    return { destroy: () => root.replaceChildren() };
  },
};
