// SPDX-License-Identifier: Apache-2.0
// The first layout is made at once, so that the first picture need not wait for a worker to load;
// the others in a worker. Where there is no worker all are made here.
import { Layout, type LayoutInput, type LayoutResult } from "./layout";

/** With more bodies than these even the first is left to the worker. */
const AT_ONCE = 400;

export class LayoutService {
  private worker: Worker | null = null;
  private readonly here = new Layout();
  private inWorker = false;

  constructor(private readonly done: (result: LayoutResult) => void) {
    try {
      this.worker = new Worker(new URL("./layout-worker.ts", import.meta.url), { type: "module" });
      this.worker.onmessage = (event: MessageEvent<LayoutResult>) => {
        this.inWorker = true;
        this.done(event.data);
      };
      this.worker.onerror = () => this.withoutWorker();
    } catch {
      this.withoutWorker();
    }
  }

  ask(input: LayoutInput): void {
    this.worker?.postMessage(input);
    // Both start from nothing and do the same, so that the worker's first answer changes nothing.
    const bodies =
      input.groups.length + input.nodes.filter((node) => node.groups.length > 1).length;
    if (this.worker === null || (!this.inWorker && bodies <= AT_ONCE))
      this.done(this.here.update(input));
  }

  stop(): void {
    this.worker?.terminate();
  }

  private withoutWorker(): void {
    this.worker?.terminate();
    this.worker = null;
  }
}
