// SPDX-License-Identifier: Apache-2.0
// One frame's numbers in typed arrays. What the server does not know is NaN.
import type { FrameMessage, Rate } from "./protocol";

/** Numbers of a link in Frame.links: from, to, msg/s, bytes/s. */
export const LINK_STRIDE = 4;

export class Frame {
  readonly seq: number;
  readonly t: number;
  readonly spanMs: number;
  readonly epoch: number;
  /** Flat: LINK_STRIDE numbers a link. */
  readonly links: Float64Array;
  readonly kinds: Readonly<Record<string, Rate>>;
  readonly lost: Readonly<Record<string, number>>;
  private readonly ofGroups: ReadonlyMap<number, Readonly<Record<string, number>>>;
  private readonly rows = new Map<number, number>();
  private readonly values: Float64Array;
  private readonly width: number;

  constructor(
    message: Omit<FrameMessage, "type">,
    private readonly columns: ReadonlyMap<string, number>,
  ) {
    this.seq = message.seq;
    this.t = message.t;
    this.spanMs = message.span_ms;
    this.epoch = message.epoch;
    this.kinds = message.kinds ?? {};
    this.lost = message.lost ?? {};
    this.ofGroups = new Map(message.groups ?? []);
    const links = message.links ?? [];
    this.links = new Float64Array(links.length * LINK_STRIDE);
    links.forEach((link, i) => this.links.set(link, i * LINK_STRIDE));
    const nodes = message.nodes ?? [];
    this.width = columns.size;
    this.values = new Float64Array(nodes.length * this.width).fill(NaN);
    nodes.forEach((row, i) => {
      this.rows.set(row[0] as number, i);
      for (let c = 0; c < this.width && c + 1 < row.length; c++) {
        const value = row[c + 1];
        if (typeof value === "number") this.values[i * this.width + c] = value;
      }
    });
  }

  /** The numbers of a group: registrations, names and what else is known. */
  group(id: number): Readonly<Record<string, number>> | undefined {
    return this.ofGroups.get(id);
  }

  has(node: number): boolean {
    return this.rows.has(node);
  }

  /** A node's metric by name (hello.metrics), NaN where it is not known. */
  value(node: number, metric: string): number {
    const row = this.rows.get(node);
    const column = this.columns.get(metric);
    return row === undefined || column === undefined ? NaN : this.values[row * this.width + column];
  }

  /** Messages/s and bytes/s over all links. */
  total(): Rate {
    let messages = 0;
    let bytes = 0;
    for (let i = 0; i < this.links.length; i += LINK_STRIDE) {
      messages += this.links[i + 2];
      bytes += this.links[i + 3];
    }
    return [messages, bytes];
  }
}
