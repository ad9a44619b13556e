// SPDX-License-Identifier: Apache-2.0
// A question that is asked again and again while its answer changes: one at a time, the newest wish wins, never
// while the page is hidden or the time shown stands still.
import type { Ctx } from "./ctx";
import { messageOf } from "../lib/format";

/** The least pause, in times of what the last answer took. */
const PATIENCE = 4;

export interface PolledOptions<T> {
  ask: () => Promise<T>;
  show: (answer: T) => void;
  /** Asking failed, and what is shown stays; the message is for a person. */
  failed?: (message: string) => void;
  /** The pause after an answer; longer where answers take long, so that a busy server is not asked ever more. */
  everyMs: () => number;
}

export class Polled<T> {
  private timer: ReturnType<typeof setTimeout> | undefined;
  private busy = false;
  private again = false;
  private ended = false;

  constructor(
    private readonly ctx: Ctx,
    private readonly options: PolledOptions<T>,
  ) {
    this.later(0);
    this.refresh();
  }

  /**
   * Asks now, or once more when the answer that is under way has come, which is then not shown. Without a connection
   * nothing is asked: pages ask again with the server's hello.
   */
  refresh(): void {
    if (this.ctx.store.connection !== "connected") return;
    if (this.busy) this.again = true;
    else void this.run();
  }

  destroy(): void {
    this.ended = true;
    clearTimeout(this.timer);
  }

  private async run(): Promise<void> {
    clearTimeout(this.timer);
    this.busy = true;
    this.again = false;
    const asked = performance.now();
    try {
      const answer = await this.options.ask();
      // An answer to what is no longer asked would only flash by.
      if (!this.ended && !this.again) this.options.show(answer);
    } catch (error) {
      if (!this.ended) this.options.failed?.(messageOf(error));
    } finally {
      this.busy = false;
      if (this.again && !this.ended) void this.run();
      else this.later(performance.now() - asked);
    }
  }

  private later(tookMs: number): void {
    clearTimeout(this.timer);
    if (this.ended) return;
    this.timer = setTimeout(
      () => {
        const { time, connection } = this.ctx.store;
        if (!this.busy && !document.hidden && connection === "connected" && time.mode === "live")
          this.refresh();
        else this.later(0);
      },
      Math.max(this.options.everyMs(), PATIENCE * tookMs),
    );
  }
}
