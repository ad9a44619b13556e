// SPDX-License-Identifier: Apache-2.0
// Tells when what is asked of the server must be asked anew because another time is shown.
import type { Ctx } from "./ctx";
import type { Change } from "../store/signals";
import { stoppedAt } from "./period";

/** Scrubbing moves fast: the server is asked when it rests. */
const REST_MS = 150;

export class TimeWatch {
  private timer: ReturnType<typeof setTimeout> | undefined;
  private shown: number | null;

  constructor(
    private readonly ctx: Ctx,
    private readonly moved: () => void,
  ) {
    this.shown = stoppedAt(ctx);
  }

  /** Live time runs on by itself and is nothing new; stopping, moving and going on are. */
  update(change: Change): void {
    if (!change.has("time")) return;
    const now = stoppedAt(this.ctx);
    if (now === this.shown) return;
    this.shown = now;
    clearTimeout(this.timer);
    this.timer = setTimeout(this.moved, now === null ? 0 : REST_MS);
  }

  destroy(): void {
    clearTimeout(this.timer);
  }
}
