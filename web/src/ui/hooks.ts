// SPDX-License-Identifier: Apache-2.0
// window.sderl: what tests and measurements from outside read. Not used by the dashboard itself.
import type { Store } from "../store/store";

export interface HookNode {
  name: string;
  status: string;
  groups: string[];
  /** CSS pixels in the window, where the node or its group's bubble is drawn; null on other pages. */
  x: number | null;
  y: number | null;
}

export interface HookGroup {
  name: string;
  nodes: string[];
  expanded: boolean;
  x: number | null;
  y: number | null;
  r: number | null;
}

export interface Hooks {
  nodes(): HookNode[];
  groups(): HookGroup[];
  /** Frames per second while something moves, over the last seconds. */
  fps(): number;
  /** From the start of the navigation to the first picture of a cluster, ms; 0 before. */
  firstPaintMs: number;
  /** Pictures drawn. */
  frames: number;
  /** What is shown: time, epoch and number of the frame. */
  shown(): { t: number | null; epoch: number | null; seq: number | null; mode: string };
}

declare global {
  interface Window {
    sderl: Hooks;
  }
}

export function installHooks(store: Store): void {
  window.sderl = {
    nodes: () => plainNodes(store),
    groups: () => plainGroups(store),
    fps: () => 0,
    firstPaintMs: 0,
    frames: 0,
    shown: () => ({
      t: store.time.t,
      epoch: store.shown.topology?.epoch ?? null,
      seq: store.shown.frame?.seq ?? null,
      mode: store.time.mode,
    }),
  };
}

/** The map answers while it is there; call the result when it goes. */
export function takeHooks(store: Store, map: Pick<Hooks, "nodes" | "groups" | "fps">): () => void {
  Object.assign(window.sderl, map);
  return () =>
    Object.assign(window.sderl, {
      nodes: () => plainNodes(store),
      groups: () => plainGroups(store),
      fps: () => 0,
    });
}

export function countFrame(): void {
  window.sderl.frames++;
  if (window.sderl.firstPaintMs === 0) window.sderl.firstPaintMs = performance.now();
}

function plainNodes(store: Store): HookNode[] {
  const topology = store.shown.topology;
  return (topology?.nodes ?? []).map((node) => ({
    name: node.name,
    status: node.status,
    groups: topology?.groupsOf(node).map((group) => group.name) ?? [],
    x: null,
    y: null,
  }));
}

function plainGroups(store: Store): HookGroup[] {
  const topology = store.shown.topology;
  return (topology?.groups ?? []).map((group) => ({
    name: group.name,
    nodes: group.nodes.map((id) => topology?.node(id)?.name).filter((name) => name !== undefined),
    expanded: false,
    x: null,
    y: null,
    r: null,
  }));
}
