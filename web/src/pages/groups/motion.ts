// SPDX-License-Identifier: Apache-2.0
// Things that glide to where they belong: what is new grows, what is gone fades. Pure but for the
// time it is told.

export interface Item {
  key: string;
  x: number;
  y: number;
  /** 0..1: how much of it is there; what is gone goes to 0. */
  size: number;
  /** Any other number that is to change smoothly. */
  extra: number;
}

/** Where something new comes from, or something gone goes to. */
export type Origin = (key: string) => { x: number; y: number } | null;

const FIELDS = 4;
const DURATION_MS = 650;

export class Motion<T extends Item> {
  items: readonly T[] = [];
  /** No longer there, still seen: after `items` in the order of the values. */
  ghosts: readonly T[] = [];
  private start = new Float32Array(0);
  private goal = new Float32Array(0);
  private now = new Float32Array(0);
  private since = 0;
  private moving = false;

  set(items: readonly T[], time: number, origin: Origin = () => null): void {
    const old = new Map<string, number>();
    const before = [...this.items, ...this.ghosts];
    before.forEach((item, i) => old.set(item.key, i));
    const keys = new Set(items.map((item) => item.key));
    const ghosts = before.filter(
      (item, i) => !keys.has(item.key) && this.now[i * FIELDS + 2] > 0.02,
    );
    const size = (items.length + ghosts.length) * FIELDS;
    const start = new Float32Array(size);
    const goal = new Float32Array(size);
    const write = (into: Float32Array, i: number, x: number, y: number, s: number, extra: number) =>
      into.set([x, y, s, extra], i * FIELDS);
    items.forEach((item, i) => {
      write(goal, i, item.x, item.y, item.size, item.extra);
      const at = old.get(item.key);
      if (at !== undefined)
        start.set(this.now.subarray(at * FIELDS, (at + 1) * FIELDS), i * FIELDS);
      else {
        const from = (before.length > 0 ? origin(item.key) : null) ?? item;
        write(start, i, from.x, from.y, 0, item.extra);
      }
    });
    ghosts.forEach((item, g) => {
      const i = items.length + g;
      const at = old.get(item.key) as number;
      start.set(this.now.subarray(at * FIELDS, (at + 1) * FIELDS), i * FIELDS);
      const to = origin(item.key) ?? { x: start[i * FIELDS], y: start[i * FIELDS + 1] };
      write(goal, i, to.x, to.y, 0, start[i * FIELDS + 3]);
    });
    this.items = items;
    this.ghosts = ghosts;
    this.start = start;
    this.goal = goal;
    this.now = start.slice();
    this.since = time;
    this.moving = true;
  }

  /** To the values of that time; true while they still change. */
  advance(time: number, still: boolean): boolean {
    if (!this.moving) return false;
    const share = still ? 1 : Math.min(1, Math.max(0, (time - this.since) / DURATION_MS));
    const eased = share < 0.5 ? 4 * share ** 3 : 1 - (2 - 2 * share) ** 3 / 2;
    for (let i = 0; i < this.now.length; i++)
      this.now[i] = this.start[i] + (this.goal[i] - this.start[i]) * eased;
    if (share >= 1) {
      this.moving = false;
      this.ghosts = [];
    }
    return this.moving;
  }

  x(i: number): number {
    return this.now[i * FIELDS];
  }

  y(i: number): number {
    return this.now[i * FIELDS + 1];
  }

  size(i: number): number {
    return this.now[i * FIELDS + 2];
  }

  extra(i: number): number {
    return this.now[i * FIELDS + 3];
  }

  /** Calls f for every item and ghost with its index. */
  each(f: (item: T, i: number, ghost: boolean) => void): void {
    this.items.forEach((item, i) => f(item, i, false));
    this.ghosts.forEach((item, g) => f(item, this.items.length + g, true));
  }
}
