// SPDX-License-Identifier: Apache-2.0
/** The last so many items in the order of their time, found by time. */
export class Ring<T extends { readonly t: number }> {
  private items: T[] = [];

  constructor(private readonly size: number) {}

  push(item: T): void {
    const last = this.items[this.items.length - 1];
    if (last !== undefined && item.t < last.t) this.items.length = this.indexAfter(item.t);
    this.items.push(item);
    // Cut in slices, so that a push is cheap on average.
    if (this.items.length > this.size * 1.25) this.items = this.items.slice(-this.size);
  }

  clear(): void {
    this.items = [];
  }

  get length(): number {
    return this.items.length;
  }

  get first(): T | undefined {
    return this.items[0];
  }

  get last(): T | undefined {
    return this.items[this.items.length - 1];
  }

  all(): readonly T[] {
    return this.items;
  }

  /** The newest item not after t. */
  at(t: number): T | undefined {
    return this.items[this.indexAfter(t) - 1];
  }

  /** The oldest item after t. */
  after(t: number): T | undefined {
    return this.items[this.indexAfter(t)];
  }

  private indexAfter(t: number): number {
    let low = 0;
    let high = this.items.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.items[middle].t <= t) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
