// SPDX-License-Identifier: Apache-2.0
// Frames per second while something moves. Pauses in which nothing changed do not count: there is
// nothing to draw in them.

const WINDOW_MS = 3000;

export class FrameRate {
  private samples: { at: number; took: number }[] = [];
  private last: number | null = null;

  drawn(time: number): void {
    if (this.last !== null && time > this.last) {
      this.samples.push({ at: time, took: time - this.last });
      if (this.samples.length > 400) this.samples.splice(0, 200);
    }
    this.last = time;
  }

  /** What comes next begins another movement. */
  pause(): void {
    this.last = null;
  }

  perSecond(now: number): number {
    const recent = this.samples.filter((sample) => now - sample.at < WINDOW_MS);
    const took = recent.reduce((sum, sample) => sum + sample.took, 0);
    return took === 0 ? 0 : (recent.length * 1000) / took;
  }
}
