// SPDX-License-Identifier: Apache-2.0
// A question that is asked again and again while its answer changes: one at a time, the newest wish wins, never
// while the page is hidden or the time shown stands still.
import type { Ctx } from "../app/ctx";

export interface PolledOptions<T> {
  ask: () => Promise<T>;
  show: (answer: T) => void;
  /** The answer stays as it was; the message is for a person. */
  failed?: (message: string) => void;
  everyMs: number;
}

export class Polled<T> {
  private timer: ReturnType<typeof setInterval>;
  private busy = false;
  private again = false;
  private ended = false;

  constructor(
    private readonly ctx: Ctx,
    private readonly options: PolledOptions<T>,
  ) {
    this.timer = setInterval(() => {
      const { time, connection } = this.ctx.store;
      if (!document.hidden && connection === "connected" && time.mode === "live") this.refresh();
    }, options.everyMs);
    this.refresh();
  }

  /** Asks now, or once more when the answer that is under way has come. */
  refresh(): void {
    if (this.busy) this.again = true;
    else void this.run();
  }

  destroy(): void {
    this.ended = true;
    clearInterval(this.timer);
  }

  private async run(): Promise<void> {
    this.busy = true;
    this.again = false;
    try {
      const answer = await this.options.ask();
      // An answer to what is no longer asked would only flash by.
      if (!this.ended && !this.again) this.options.show(answer);
    } catch (error) {
      if (!this.ended) this.options.failed?.(error instanceof Error ? error.message : String(error));
    } finally {
      this.busy = false;
      if (this.again && !this.ended) void this.run();
    }
  }
}
