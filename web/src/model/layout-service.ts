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
  /** There is no worker, or it does not work. */
  private alone = typeof Worker === "undefined";
  private readonly here = new Layout();
  private inWorker = false;
  private asked: LayoutInput[] = [];
  /** What the worker has not answered yet, oldest first. */
  private unanswered: LayoutInput[] = [];
  private later: ReturnType<typeof setTimeout> | undefined;

  constructor(private readonly done: (result: LayoutResult) => void) {}

  ask(input: LayoutInput): void {
    const isHere = this.alone || (!this.inWorker && weight(input) <= AT_ONCE);
    // Both start from nothing and do the same, so that the worker's first answer changes nothing.
    this.asked.push(input);
    if (isHere) this.done(this.here.update(input));
    if (!isHere) this.tellWorker();
    else this.later ??= setTimeout(() => this.tellWorker(), LATER_MS);
  }

  stop(): void {
    clearTimeout(this.later);
    this.worker?.terminate();
  }

  private tellWorker(): void {
    clearTimeout(this.later);
    this.later = undefined;
    const asked = this.asked;
    this.asked = [];
    if (this.alone) return;
    this.unanswered.push(...asked);
    if (this.worker === null) this.start();
    for (const input of asked) this.worker?.postMessage(input);
  }

  /** Its program is fetched when it is first asked: not beside what the first picture waits for. */
  private start(): void {
    try {
      this.worker = new Worker(new URL("./layout-worker.ts", import.meta.url), { type: "module" });
      this.worker.onmessage = (event: MessageEvent<LayoutResult>) => {
        this.inWorker = true;
        this.unanswered.shift();
        this.done(event.data);
      };
      this.worker.onerror = () => this.withoutWorker();
    } catch {
      this.withoutWorker();
    }
  }

  private withoutWorker(): void {
    this.worker?.terminate();
    this.worker = null;
    this.alone = true;
    const last = this.unanswered.at(-1);
    this.unanswered = [];
    if (last !== undefined) this.done(this.here.update(last));
  }
}
