// SPDX-License-Identifier: Apache-2.0
// Traffic between entities, in typed arrays: a frame's rates are summed into targets, and what is
// shown runs after them, so that 5 frames a second look like 60.
import { type Frame, LINK_STRIDE } from "./frame";
import type { Topology } from "./topology";
import { absolute, type Measure, position, relative, type Scale } from "./traffic-scale";
import type { Scene } from "./scene";

/** Which edges are shown: from so many msg/s on, or only those past the gateways. */
export type Minimum = number | "direct";

export class Edges {
  count = 0;
  from = new Int32Array(256);
  to = new Int32Array(256);
  msgs = new Float64Array(256);
  bytes = new Float64Array(256);
  /** 1 where some of it is between nodes that share no group. */
  direct = new Uint8Array(256);
  /** Position on the traffic scale now shown, 0..1; below 0: not there. */
  shown = new Float32Array(256);
  private goal = new Float32Array(256);
  private readonly index = new Map<number, number>();
  private directLinks = new Map<number, boolean>();

  /** Another scene: entities have other indices. Edges between the same two go on from where they were. */
  rebuild(scene: Scene, before: Scene | null): void {
    const kept = new Map<string, number>();
    if (before !== null) {
      for (let e = 0; e < this.count; e++)
        kept.set(
          `${before.entities[this.from[e]].key}>${before.entities[this.to[e]].key}`,
          this.shown[e],
        );
    }
    this.count = 0;
    this.index.clear();
    this.directLinks = new Map();
    this.starts = kept;
    this.scene = scene;
  }
  private starts = new Map<string, number>();
  private scene: Scene | null = null;

  /** Of what was shown last. */
  scale: Scale = absolute("msgs");

  update(
    topology: Topology,
    frame: Frame,
    { measure, minimum, scale }: { measure: Measure; minimum: Minimum; scale: "" | "relative" },
  ): void {
    const scene = this.scene;
    if (scene === null) return;
    this.msgs.fill(0, 0, this.count);
    this.bytes.fill(0, 0, this.count);
    this.direct.fill(0, 0, this.count);
    const { links } = frame;
    const { entityOfNode } = scene;
    for (let i = 0; i < links.length; i += LINK_STRIDE) {
      const a = links[i];
      const b = links[i + 1];
      const from = a < entityOfNode.length ? entityOfNode[a] : -1;
      const to = b < entityOfNode.length ? entityOfNode[b] : -1;
      // What stays inside a bubble is its own, not an edge.
      if (from < 0 || to < 0 || from === to || links[i + 2] <= 0) continue;
      const e = this.edge(from, to);
      this.msgs[e] += links[i + 2];
      this.bytes[e] += links[i + 3];
      if (this.isDirect(topology, a, b)) this.direct[e] = 1;
    }
    const rates = measure === "msgs" ? this.msgs : this.bytes;
    const seen: number[] = [];
    for (let e = 0; e < this.count; e++)
      if (this.msgs[e] > 0 && this.isShown(e, minimum)) seen.push(e);
    this.scale =
      scale === "relative"
        ? relative(
            seen.map((e) => rates[e]),
            measure,
          )
        : absolute(measure);
    this.goal.fill(-0.2, 0, this.count);
    for (const e of seen) this.goal[e] = position(rates[e], this.scale);
    this.starts.clear();
  }

  /** Moves what is shown towards the goal; `share` 1 is all the way. True while it still moves. */
  ease(share: number): boolean {
    let moving = false;
    for (let e = 0; e < this.count; e++) {
      const rest = this.goal[e] - this.shown[e];
      if (rest === 0) continue;
      if (share >= 1 || Math.abs(rest) < 0.003) this.shown[e] = this.goal[e];
      else {
        this.shown[e] += rest * share;
        moving = true;
      }
    }
    return moving;
  }

  private isShown(e: number, minimum: Minimum): boolean {
    return minimum === "direct" ? this.direct[e] === 1 : this.msgs[e] >= minimum;
  }

  private edge(from: number, to: number): number {
    const key = from * 65536 + to;
    const known = this.index.get(key);
    if (known !== undefined) return known;
    const e = this.count++;
    if (e >= this.from.length) this.grow();
    this.index.set(key, e);
    this.from[e] = from;
    this.to[e] = to;
    this.msgs[e] = this.bytes[e] = this.direct[e] = 0;
    const entities = (this.scene as Scene).entities;
    this.shown[e] = this.starts.get(`${entities[from].key}>${entities[to].key}`) ?? -0.2;
    this.goal[e] = this.shown[e];
    return e;
  }

  private isDirect(topology: Topology, a: number, b: number): boolean {
    const key = a * 65536 + b;
    let direct = this.directLinks.get(key);
    if (direct === undefined) {
      const from = topology.node(a)?.groups ?? [];
      const to = topology.node(b)?.groups ?? [];
      direct = from.length > 0 && to.length > 0 && !from.some((group) => to.includes(group));
      this.directLinks.set(key, direct);
    }
    return direct;
  }

  private grow(): void {
    const size = this.from.length * 2;
    const copy = <T extends Int32Array | Float64Array | Uint8Array | Float32Array>(
      into: T,
      old: T,
    ): T => {
      into.set(old);
      return into;
    };
    this.from = copy(new Int32Array(size), this.from);
    this.to = copy(new Int32Array(size), this.to);
    this.msgs = copy(new Float64Array(size), this.msgs);
    this.bytes = copy(new Float64Array(size), this.bytes);
    this.direct = copy(new Uint8Array(size), this.direct);
    this.shown = copy(new Float32Array(size), this.shown);
    this.goal = copy(new Float32Array(size), this.goal);
  }
}
