// SPDX-License-Identifier: Apache-2.0
// Pan and zoom, and flights to where something is.
import { select } from "d3-selection";
import { type ZoomTransform, zoom, zoomIdentity } from "d3-zoom";

export interface Box {
  width: number;
  height: number;
  /** Kept free for what lies over the canvas, px. */
  top: number;
  right: number;
  bottom: number;
  left: number;
}

const SCALES: [number, number] = [0.12, 6];
const FLIGHT_MS = 520;

export class Camera {
  transform: ZoomTransform = zoomIdentity;
  /** Nobody moved it: it may fit what there is by itself. */
  automatic = true;
  private flight: { from: ZoomTransform; to: ZoomTransform; since: number | null } | null = null;
  private readonly behavior = zoom<HTMLCanvasElement, unknown>().scaleExtent(SCALES);

  constructor(
    private readonly canvas: HTMLCanvasElement,
    private readonly moved: () => void,
  ) {
    this.behavior.on("zoom", (event: { transform: ZoomTransform; sourceEvent: unknown }) => {
      this.transform = event.transform;
      if (event.sourceEvent !== null && event.sourceEvent !== undefined) {
        this.automatic = false;
        this.flight = null;
      }
      this.moved();
    });
    select(canvas).call(this.behavior).on("dblclick.zoom", null);
  }

  /** The transform that shows a rectangle [x, y, w, h] in a box, at most so large. */
  static fit(
    [x, y, w, h]: readonly [number, number, number, number],
    box: Box,
    most: number,
  ): ZoomTransform {
    const width = Math.max(80, box.width - box.left - box.right);
    const height = Math.max(80, box.height - box.top - box.bottom);
    const k = Math.min(most, SCALES[1], Math.max(SCALES[0], Math.min(width / w, height / h)));
    return zoomIdentity
      .translate(box.left + width / 2 - k * (x + w / 2), box.top + height / 2 - k * (y + h / 2))
      .scale(k);
  }

  flyTo(to: ZoomTransform, still: boolean): void {
    if (still) return this.jump(to);
    this.flight = { from: this.transform, to, since: null };
    this.moved();
  }

  jump(to: ZoomTransform): void {
    this.flight = null;
    this.behavior.transform(select(this.canvas), to);
  }

  zoomBy(factor: number, box: Box, still: boolean): void {
    const goal = this.flight?.to ?? this.transform;
    const k = Math.min(SCALES[1], Math.max(SCALES[0], goal.k * factor));
    const [cx, cy] = [box.width / 2, box.height / 2];
    const [wx, wy] = goal.invert([cx, cy]);
    this.automatic = false;
    this.flyTo(zoomIdentity.translate(cx - k * wx, cy - k * wy).scale(k), still);
  }

  panBy(dx: number, dy: number): void {
    this.automatic = false;
    this.jump(
      zoomIdentity.translate(this.transform.x + dx, this.transform.y + dy).scale(this.transform.k),
    );
  }

  /** Goes on with a flight; true while it lasts. */
  advance(time: number): boolean {
    const flight = this.flight;
    if (flight === null) return false;
    flight.since ??= time;
    const share = Math.min(1, (time - flight.since) / FLIGHT_MS);
    const eased = share < 0.5 ? 4 * share ** 3 : 1 - (2 - 2 * share) ** 3 / 2;
    const { from, to } = flight;
    // Scale in equal ratios, and the point that stays fixed between both views stays fixed.
    const k = from.k * (to.k / from.k) ** eased;
    const f = to.k === from.k ? eased : (k - from.k) / (to.k - from.k);
    const x = from.x + (to.x - from.x) * f;
    const y = from.y + (to.y - from.y) * f;
    this.behavior.transform(select(this.canvas), zoomIdentity.translate(x, y).scale(k));
    this.flight = share >= 1 ? null : flight;
    return this.flight !== null;
  }

  stop(): void {
    select(this.canvas).on(".zoom", null);
  }
}
