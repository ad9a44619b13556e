// SPDX-License-Identifier: Apache-2.0
// The first layout is made at once, so that the first picture need not wait for a worker to load;
// the others in a worker. Where there is no worker all are made here.
import { Layout, type LayoutInput, type LayoutResult, weight } from "./layout";

/** With more bodies than these even the first is left to the worker. */
const AT_ONCE = 400;
/** The worker begins after the first picture: beside it, both would take twice as long. */
const LATER_MS = 300;

export class LayoutService {
  private worker: Worker | null = null;
  private readonly here = new Layout();
  private inWorker = false;
  private asked: LayoutInput[] = [];
  private later: ReturnType<typeof setTimeout> | undefined;

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
    const isFirst = this.worker === null || (!this.inWorker && weight(input) <= AT_ONCE);
    // Both start from nothing and do the same, so that the worker's first answer changes nothing.
    this.asked.push(input);
    if (isFirst) this.done(this.here.update(input));
    if (!isFirst) this.tellWorker();
    else this.later ??= setTimeout(() => this.tellWorker(), LATER_MS);
  }

  stop(): void {
    clearTimeout(this.later);
    this.worker?.terminate();
  }

  private tellWorker(): void {
    clearTimeout(this.later);
    this.later = undefined;
    for (const input of this.asked) this.worker?.postMessage(input);
    this.asked = [];
  }

  private withoutWorker(): void {
    this.worker?.terminate();
    this.worker = null;
  }
}
