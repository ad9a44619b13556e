// SPDX-License-Identifier: Apache-2.0
// Puts the map on its canvas. What is drawn costs the more the more there is of it, so a map that is moved
// is not drawn for every picture: a copy of what was drawn a moment ago is moved in its place.
import { paint } from "./paint";
import type { Picture } from "./picture";

/** The copy reaches so far past each side of the canvas, px. */
const MARGIN = 128;
/** A copy serves for so long, or for so many pictures where a busy machine draws them slowly. */
const RENEW_MS = 150;
const RENEW_AFTER = 6;
/** A copy of a heavy picture serves for longer, as long as it reaches far enough. */
const RENEW_HEAVY_MS = 450;
/** Not moved for so long, the map is at rest, and is drawn as it is. */
const SETTLE_MS = 100;
/** With more things than these, a picture takes longer than 60 in a second leave for it. */
const HEAVY = 1000;

type View = Pick<Picture, "k" | "tx" | "ty" | "width" | "height" | "ratio">;

interface Copy {
  view: View;
  at: number;
  shown: number;
}

/** Too much to be drawn anew for each of 60 pictures a second. */
export function isHeavy({ edges, entities, discs }: Pick<Picture, "edges" | "entities" | "discs">) {
  return edges.count + entities.items.length + discs.items.length > HEAVY;
}

export class Painter {
  private readonly copy = document.createElement("canvas");
  private readonly onCopy = this.copy.getContext("2d") as CanvasRenderingContext2D;
  private copied: Copy | null = null;
  private last: View | null = null;
  private movedAt = -Infinity;

  constructor(private readonly context: CanvasRenderingContext2D) {}

  /** Whether the map has to be drawn once more, because what is seen now is a copy. */
  paint(picture: Picture, time: number, gliding: boolean): boolean {
    const { k, tx, ty, width, height, ratio } = picture;
    const view = { k, tx, ty, width, height, ratio };
    const { last } = this;
    this.last = view;
    if (last !== null && !sameSize(last, view)) this.copied = null;
    else if (last !== null && (last.k !== k || last.tx !== tx || last.ty !== ty))
      this.movedAt = time;
    const heavy = isHeavy(picture);
    // A copy that is scaled is less sharp, and shows where things were: only where it has to be.
    const isMoved = time - this.movedAt < SETTLE_MS && (heavy || (last?.k === k && !gliding));
    if (!isMoved) {
      this.copied = null;
      paint(this.context, picture);
      return false;
    }
    if (this.copied === null || !serves(this.copied, view, time, heavy))
      this.copied = this.renew(picture, view, time);
    this.copied.shown++;
    this.show(this.copied.view, view);
    return true;
  }

  private renew(picture: Picture, view: View, at: number): Copy {
    const [width, height] = [view.width + 2 * MARGIN, view.height + 2 * MARGIN];
    const [w, h] = [width, height].map((side) => Math.round(side * view.ratio));
    if (this.copy.width !== w || this.copy.height !== h)
      [this.copy.width, this.copy.height] = [w, h];
    const [tx, ty] = [view.tx + MARGIN, view.ty + MARGIN];
    paint(this.onCopy, { ...picture, width, height, tx, ty });
    return { view, at, shown: 0 };
  }

  private show(from: View, to: View): void {
    const { context: c, copy } = this;
    const scale = to.k / from.k;
    const place = (now: number, then: number) => {
      const at = (now - (then + MARGIN) * scale) * to.ratio;
      // Between two pixels of the screen, texts would lose their edge.
      return scale === 1 ? Math.round(at) : at;
    };
    c.setTransform(1, 0, 0, 1, 0, 0);
    c.globalCompositeOperation = "copy";
    c.drawImage(
      copy,
      place(to.tx, from.tx),
      place(to.ty, from.ty),
      copy.width * scale,
      copy.height * scale,
    );
    c.globalCompositeOperation = "source-over";
  }
}

/** Whether a copy can be shown for a view. */
function serves(
  { view, at, shown }: Copy,
  { k, tx, ty }: View,
  time: number,
  heavy: boolean,
): boolean {
  const age = time - at;
  const isNew = age < RENEW_MS || shown < RENEW_AFTER;
  const isExact =
    k === view.k && Math.abs(tx - view.tx) <= MARGIN && Math.abs(ty - view.ty) <= MARGIN;
  // Where drawing takes long, a strip that is empty for a moment is better than to stand still.
  return heavy ? isNew || (isExact && age < RENEW_HEAVY_MS) : isNew && isExact;
}

const sameSize = (a: View, b: View): boolean =>
  a.width === b.width && a.height === b.height && a.ratio === b.ratio;
