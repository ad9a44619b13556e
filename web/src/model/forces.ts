// SPDX-License-Identifier: Apache-2.0
// Two forces of the layout that look at each pair of bodies: those of d3-force, computed exactly, in
// flat arrays. A layout has few hundred bodies, and takes fewer steps with more of them; with so few
// a tree of them, made anew for each step, costs several times the pairs.
import type { Force, SimulationNodeDatum } from "d3-force";

interface Body extends SimulationNodeDatum {
  r: number;
}

/** How much nearer two bodies may come while a step makes room. */
const SLACK = 20;

/** Bodies at the same place part in a direction of their own, the same each time. */
const apart = (i: number, j: number): number => 1e-6 * (1 + ((i * 7 + j * 13) % 11));

/** All push each other away, the larger ones more. */
export function pushApart(strength: (body: Body) => number): Force<Body, never> {
  let bodies: Body[] = [];
  let [x, y, vx, vy, weight] = arrays(0);
  const force = (alpha: number) => {
    const n = bodies.length;
    bodies.forEach((body, i) => {
      x[i] = body.x as number;
      y[i] = body.y as number;
      vx[i] = vy[i] = 0;
    });
    for (let i = 0; i < n; i++) {
      const xi = x[i];
      const yi = y[i];
      const wi = weight[i];
      let dvx = 0;
      let dvy = 0;
      for (let j = i + 1; j < n; j++) {
        let dx = x[j] - xi;
        let dy = y[j] - yi;
        if (dx === 0) dx = apart(i, j);
        if (dy === 0) dy = apart(j, i);
        let square = dx * dx + dy * dy;
        // Very close ones are not thrown out of the picture.
        if (square < 1) square = Math.sqrt(square);
        const share = alpha / square;
        dvx += dx * weight[j] * share;
        dvy += dy * weight[j] * share;
        vx[j] -= dx * wi * share;
        vy[j] -= dy * wi * share;
      }
      vx[i] += dvx;
      vy[i] += dvy;
    }
    bodies.forEach((body, i) => {
      body.vx = (body.vx as number) + vx[i];
      body.vy = (body.vy as number) + vy[i];
    });
  };
  force.initialize = (all: Body[]) => {
    bodies = all;
    [x, y, vx, vy, weight] = arrays(all.length);
    all.forEach((body, i) => (weight[i] = strength(body)));
  };
  return force;
}

/** None lies over another: those that would are moved apart, the smaller one further. */
export function keepApart(
  radius: (body: Body) => number,
  strength: number,
  iterations: number,
): Force<Body, never> {
  let bodies: Body[] = [];
  let [x, y, vx, vy, radii] = arrays(0);
  /** The pairs that may meet in a step, one body after the other in both. */
  let [first, second] = [new Int32Array(0), new Int32Array(0)];
  /** Looked for once in a step, and not in each round: few are near enough. */
  const near = (): number => {
    const n = bodies.length;
    let count = 0;
    for (let i = 0; i < n; i++) {
      const xi = x[i] + vx[i];
      const yi = y[i] + vy[i];
      const ri = radii[i] + SLACK;
      for (let j = i + 1; j < n; j++) {
        const reach = ri + radii[j];
        const dx = xi - x[j] - vx[j];
        if (dx >= reach || dx <= -reach) continue;
        const dy = yi - y[j] - vy[j];
        if (dy >= reach || dy <= -reach) continue;
        if (count === first.length) [first, second] = [longer(first), longer(second)];
        first[count] = i;
        second[count++] = j;
      }
    }
    return count;
  };
  const force = () => {
    bodies.forEach((body, i) => {
      x[i] = body.x as number;
      y[i] = body.y as number;
      vx[i] = body.vx as number;
      vy[i] = body.vy as number;
    });
    const count = near();
    for (let k = 0; k < iterations; k++)
      for (let pair = 0; pair < count; pair++) {
        const i = first[pair];
        const j = second[pair];
        const reach = radii[i] + radii[j];
        let dx = x[i] + vx[i] - x[j] - vx[j];
        let dy = y[i] + vy[i] - y[j] - vy[j];
        if (dx * dx + dy * dy >= reach * reach) continue;
        if (dx === 0) dx = apart(i, j);
        if (dy === 0) dy = apart(j, i);
        const distance = Math.sqrt(dx * dx + dy * dy);
        const push = ((reach - distance) / distance) * strength;
        const share = radii[j] ** 2 / (radii[i] ** 2 + radii[j] ** 2);
        vx[i] += dx * push * share;
        vy[i] += dy * push * share;
        vx[j] -= dx * push * (1 - share);
        vy[j] -= dy * push * (1 - share);
      }
    bodies.forEach((body, i) => {
      body.vx = vx[i];
      body.vy = vy[i];
    });
  };
  force.initialize = (all: Body[]) => {
    bodies = all;
    [x, y, vx, vy, radii] = arrays(all.length);
    all.forEach((body, i) => (radii[i] = radius(body)));
  };
  return force;
}

function longer(list: Int32Array): Int32Array<ArrayBuffer> {
  const more = new Int32Array(2 * list.length + 1024);
  more.set(list);
  return more;
}

function arrays(n: number): Float64Array[] {
  return Array.from({ length: 5 }, () => new Float64Array(n));
}
