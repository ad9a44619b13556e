// SPDX-License-Identifier: Apache-2.0
// The layout off the page's thread: answers come in the order of the questions.
import { Layout, type LayoutInput } from "./layout";

const layout = new Layout();
const scope = self as unknown as { postMessage(message: unknown): void };

addEventListener("message", (event: MessageEvent<LayoutInput>) => {
  scope.postMessage(layout.update(event.data));
});
