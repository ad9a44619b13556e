// SPDX-License-Identifier: Apache-2.0
// Listeners and changes. Changes are gathered and told once per animation frame, as a set:
// a burst of messages costs one drawing.

export type Kind =
  | "hello"
  | "connection"
  | "topology"
  | "frame"
  | "findings"
  | "alarms"
  | "events"
  | "detail"
  | "time"
  | "range"
  | "route"
  | "theme";
export type Change = ReadonlySet<Kind>;
export type Listener = (change: Change) => void;

export class Signals {
  private readonly listeners = new Set<Listener>();
  private pending = new Set<Kind>();
  private scheduled = false;

  constructor(private readonly later: (run: () => void) => void = onNextFrame) {}

  on(listener: Listener): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  tell(...kinds: Kind[]): void {
    for (const kind of kinds) this.pending.add(kind);
    if (this.scheduled) return;
    this.scheduled = true;
    this.later(() => {
      this.scheduled = false;
      const change = this.pending;
      this.pending = new Set();
      for (const listener of [...this.listeners]) listener(change);
    });
  }
}

/** An animation frame, or 250 ms where there is none (a hidden tab draws nothing). */
function onNextFrame(run: () => void): void {
  let done = false;
  const once = () => {
    if (done) return;
    done = true;
    clearTimeout(timer);
    run();
  };
  const timer = setTimeout(once, 250);
  requestAnimationFrame(once);
}
