// SPDX-License-Identifier: Apache-2.0
// The map: canvas, camera, what moves, what is pointed at. Draws only when something changed.
import type { Ctx } from "../../ui/ctx";
import { countFrame } from "../../ui/hooks";
import { byteRate, messageRate } from "../../lib/format";
import type { Curve } from "../../model/curve";
import { Edges, type Minimum } from "../../model/edges";
import { Flows } from "../../model/flows";
import { visible } from "../../lib/visible";
import { flowOf } from "../../model/known";
import { LayoutService } from "../../model/layout-service";
import type { LayoutResult } from "../../model/layout";
import {
  type Entity,
  expandedGroups,
  extent,
  layoutInput,
  type Level,
  makeScene,
  type Scene,
} from "../../model/scene";
import { type Match, search } from "../../model/search";
import type { Topology } from "../../model/topology";
import { labeller } from "../../model/node-names";
import type { Measure } from "../../model/traffic-scale";
import { type Box, Camera } from "./camera";
import { FrameRate } from "./frame-rate";
import { edgeAt, nextTo } from "./nearby";
import { Motion } from "./motion";
import { curveOf } from "./paint";
import { isHeavy, Painter } from "./painter";
import { type DiscItem, type EntityItem, nodeRadius, type Picture } from "./picture";

export interface ViewOptions {
  level: Level;
  measure: Measure;
  minimum: Minimum;
  scale: "" | "relative";
  search: string;
}

export interface Hit {
  entity: Entity | null;
  /** Index of an edge, or -1. */
  edge: number;
}

/** Zoomed in so far, groups open by themselves; they close again a little further out. */
const OPEN_AT = 1.3;
const CLOSE_AT = 1.12;
const EASE_MS = 130;

export class GroupView {
  readonly canvas: HTMLCanvasElement;
  readonly edges = new Edges();
  scene: Scene | null = null;
  flows: Flows | null = null;
  options: ViewOptions = { level: "auto", measure: "msgs", minimum: 0, scale: "", search: "" };
  open: number | null = null;
  /** Keys, which outlive scenes. */
  hovered: string | null = null;
  pinned: string | null = null;
  focused: string | null = null;
  hoveredEdge = -1;
  readonly camera: Camera;
  /** After a drawing in which something has moved. */
  onMoved: () => void = () => undefined;
  /** After another scene has been made. */
  onScene: () => void = () => undefined;

  private readonly painter: Painter;
  readonly entities = new Motion<EntityItem>();
  readonly discs = new Motion<DiscItem>();
  private readonly layout: LayoutService;
  private readonly rate = new FrameRate();
  private readonly resize: ResizeObserver;
  private places: LayoutResult | null = null;
  private laidOut: Topology | null = null;
  private waiting: Topology[] = [];
  private lit: Uint8Array | null = null;
  private litGroups: ReadonlySet<number> | null = null;
  /** What the search finds, the likeliest first. */
  matches: readonly Match[] = [];
  private labels: (name: string) => string = (name) => name;
  private close = false;
  private box: Box = { width: 1, height: 1, top: 0, right: 0, bottom: 0, left: 0 };
  private ratio = 1;
  private scheduled = 0;
  private lastDraw = 0;
  private readonly reduced = matchMedia("(prefers-reduced-motion: reduce)");
  private insets: () => Omit<Box, "width" | "height">;

  constructor(
    private readonly ctx: Ctx,
    root: HTMLElement,
    insets: () => Omit<Box, "width" | "height">,
  ) {
    this.insets = insets;
    this.canvas = document.createElement("canvas");
    this.canvas.className = "map-canvas";
    this.canvas.tabIndex = 0;
    root.append(this.canvas);
    this.painter = new Painter(this.canvas.getContext("2d") as CanvasRenderingContext2D);
    this.camera = new Camera(this.canvas, () => this.cameraMoved());
    this.layout = new LayoutService((places) => this.laid(places));
    this.resize = new ResizeObserver(() => this.resized(root));
    this.resize.observe(root);
    this.resized(root);
  }

  destroy(): void {
    cancelAnimationFrame(this.scheduled);
    this.resize.disconnect();
    this.layout.stop();
    this.camera.stop();
  }

  get still(): boolean {
    return this.reduced.matches;
  }

  // News -------------------------------------------------------------------

  /** Another topology: laid out first, then shown. */
  topologyChanged(): void {
    const { topology } = this.ctx.store.shown;
    if (topology === null) return;
    this.labels = labeller(topology.nodes.map((node) => node.name));
    const input = layoutInput(topology, this.box.width / Math.max(1, this.box.height));
    if (this.places !== null && this.laidOut !== null && sameShape(this.laidOut, topology)) {
      this.laidOut = topology;
      this.rebuild();
      return;
    }
    this.waiting.push(topology);
    this.layout.ask(input);
  }

  frameChanged(): void {
    const { topology, frame } = this.ctx.store.shown;
    if (topology === null || frame === null) return;
    this.flows = new Flows(topology, frame);
    this.edges.update(topology, frame, this.options);
    this.request();
  }

  setOptions(options: ViewOptions): void {
    const before = this.options;
    this.options = options;
    if (before.level !== options.level) this.rebuild();
    else {
      this.markLit();
      this.frameChanged();
    }
    this.request();
  }

  setOpen(group: number | null): void {
    if (this.open === group) return;
    this.open = group;
    this.rebuild();
    this.fit();
  }

  // Places -----------------------------------------------------------------

  private laid(places: LayoutResult): void {
    const first = this.places === null;
    this.places = places;
    const topology = this.waiting.length > 0 ? this.waiting[this.waiting.length - 1] : this.laidOut;
    this.waiting = [];
    this.laidOut = topology ?? this.ctx.store.shown.topology;
    this.rebuild();
    if (first) this.camera.jump(this.fitted());
    else if (this.camera.automatic) this.camera.flyTo(this.fitted(), this.still);
  }

  private rebuild(): void {
    const topology = this.ctx.store.shown.topology;
    if (topology === null || this.places === null) return;
    const before = this.scene;
    const open = this.open !== null && topology.group(this.open) === undefined ? null : this.open;
    const expanded = expandedGroups(
      topology,
      this.options.level,
      open,
      this.close && open === null,
    );
    const scene = makeScene(topology, this.places, expanded);
    this.edges.rebuild(scene, before);
    this.scene = scene;
    const time = performance.now();
    const discs = new Map(scene.discs.map((disc) => [disc.id, disc]));
    const groupOf = new Map<string, number>();
    for (const one of [before, scene])
      for (const entity of one?.entities ?? []) groupOf.set(entity.key, entity.groups[0]);
    // What opens comes out of its group's middle, what closes goes back there.
    const origin = (key: string) => {
      const disc = discs.get(groupOf.get(key) ?? NaN);
      return disc === undefined ? null : { x: disc.x, y: disc.y };
    };
    this.entities.set(
      scene.entities.map((entity) => ({
        key: entity.key,
        x: entity.x,
        y: entity.y,
        size: 1,
        extra: 0,
        entity,
      })),
      time,
      origin,
    );
    this.discs.set(
      scene.discs.map((disc) => ({
        key: disc.name,
        x: disc.x,
        y: disc.y,
        size: 1,
        extra: disc.expanded ? 1 : 0,
        disc,
      })),
      time,
    );
    this.hoveredEdge = -1;
    this.markLit();
    this.frameChanged();
    this.onScene();
    this.request();
  }

  private markLit(): void {
    const { topology } = this.ctx.store.shown;
    const { scene } = this;
    this.matches = topology === null ? [] : search(topology, this.options.search);
    if (this.options.search.trim() === "" || scene === null) {
      this.lit = this.litGroups = null;
      return;
    }
    const of = (kind: Match["kind"]) =>
      new Set(this.matches.filter((match) => match.kind === kind).map((match) => match.id));
    const [groups, nodes] = [of("group"), of("node")];
    this.lit = Uint8Array.from(scene.entities, ({ groups: mine, members }) =>
      mine.some((id) => groups.has(id)) || members.some((id) => nodes.has(id)) ? 1 : 0,
    );
    this.litGroups = new Set(
      scene.entities.flatMap(({ groups: mine }, i) => (this.lit?.[i] === 1 ? mine : [])),
    );
  }

  /** What is pointed at is left, but for one that is pinned. */
  forget(pinned: string | null): void {
    this.hovered = null;
    this.hoveredEdge = -1;
    this.pinned = pinned;
  }

  // Camera -----------------------------------------------------------------

  fit(): void {
    if (this.scene === null) return;
    this.camera.automatic = true;
    this.camera.flyTo(this.fitted(), this.still);
  }

  /** Moves the map so far that an entity is in sight. */
  reveal(key: string): void {
    const i = this.indexOf(key);
    if (i < 0) return;
    const { x, y, r } = this.placeOf(i);
    const { top, right, bottom, left } = this.insets();
    const { width, height } = this.box;
    const out = (at: number, least: number, most: number) =>
      at < least ? least - at : at > most ? most - at : 0;
    const dx = out(x, left + r, width - right - r);
    const dy = out(y, top + r, height - bottom - r);
    if (dx !== 0 || dy !== 0) this.camera.panBy(dx, dy);
  }

  zoomBy(factor: number): void {
    this.camera.zoomBy(factor, this.box, this.still);
  }

  private fitted() {
    const scene = this.scene as Scene;
    const box = { ...this.box, ...this.insets() };
    if (this.open !== null)
      return Camera.fit(
        extent(scene, (disc) => disc.id === this.open),
        box,
        2.4,
      );
    return Camera.fit(
      extent(scene),
      box,
      scene.entities.length <= 14 ? 2.3 : scene.entities.length <= 30 ? 1.7 : 1.25,
    );
  }

  private cameraMoved(): void {
    const { k } = this.camera.transform;
    const close = k > (this.close ? CLOSE_AT : OPEN_AT) && !this.camera.automatic;
    if (close !== this.close) {
      this.close = close;
      if (this.options.level === "auto" && this.open === null) this.rebuild();
    }
    this.request();
  }

  private resized(root: HTMLElement): void {
    const { width, height } = root.getBoundingClientRect();
    this.ratio = Math.min(2, devicePixelRatio || 1);
    this.box = { ...this.box, width, height };
    this.canvas.width = Math.max(1, Math.round(width * this.ratio));
    this.canvas.height = Math.max(1, Math.round(height * this.ratio));
    if (this.scene !== null && this.camera.automatic) this.camera.jump(this.fitted());
    // A canvas of another size is an empty one.
    if (this.scene !== null) this.draw(performance.now());
  }

  // What is where ------------------------------------------------------------

  indexOf(key: string | null): number {
    return key === null || this.scene === null
      ? -1
      : this.scene.entities.findIndex((entity) => entity.key === key);
  }

  /** Middle and radius of an entity in the canvas, px. */
  placeOf(index: number): { x: number; y: number; r: number } {
    const { k, x, y } = this.camera.transform;
    const entity = (this.scene as Scene).entities[index];
    const r = entity.kind === "bubble" ? entity.r * k : nodeRadius(entity.r, k) * k;
    return { x: this.entities.x(index) * k + x, y: this.entities.y(index) * k + y, r };
  }

  /** The middle of an edge in the canvas, px: of the curve, not between its ends. */
  middleOf(edge: number): { x: number; y: number } {
    const { k, x, y } = this.camera.transform;
    const shape: Curve = { x0: 0, y0: 0, cx: 0, cy: 0, x1: 0, y1: 0 };
    curveOf({ edges: this.edges, entities: this.entities, k }, edge, shape);
    const middle = (a: number, c: number, b: number) => (a + 2 * c + b) / 4;
    return {
      x: middle(shape.x0, shape.cx, shape.x1) * k + x,
      y: middle(shape.y0, shape.cy, shape.y1) * k + y,
    };
  }

  hit(px: number, py: number, reach: number): Hit {
    const scene = this.scene;
    if (scene === null) return { entity: null, edge: -1 };
    const [x, y] = this.camera.transform.invert([px, py]);
    const { k } = this.camera.transform;
    let best: Entity | null = null;
    let least = Infinity;
    scene.entities.forEach((entity, i) => {
      if (entity.kind !== "node") return;
      const distance =
        Math.hypot(this.entities.x(i) - x, this.entities.y(i) - y) - nodeRadius(entity.r, k);
      if (distance < reach / k && distance < least) [best, least] = [entity, distance];
    });
    if (best !== null) return { entity: best, edge: -1 };
    const bubble = scene.entities.findIndex(
      (entity, i) =>
        entity.kind === "bubble" &&
        Math.hypot(this.entities.x(i) - x, this.entities.y(i) - y) < entity.r,
    );
    // Edges pass behind bubbles.
    if (bubble >= 0) return { entity: scene.entities[bubble], edge: -1 };
    return {
      entity: null,
      edge: edgeAt({ edges: this.edges, entities: this.entities, k }, x, y, 5 / k),
    };
  }

  /** The group whose disc is there, for clicks beside nodes. */
  discAt(px: number, py: number): number | null {
    const [x, y] = this.camera.transform.invert([px, py]);
    const found = this.scene?.discs.find((disc) => Math.hypot(disc.x - x, disc.y - y) < disc.r);
    return found?.id ?? null;
  }

  /** From the entity with keyboard focus to the next in a direction. */
  next(dx: number, dy: number): Entity | null {
    if (this.scene === null || this.scene.entities.length === 0) return null;
    const from = this.indexOf(this.focused);
    return from < 0 ? this.scene.entities[0] : nextTo(this.entities, from, dx, dy);
  }

  labelOf = (entity: Entity): string =>
    visible(entity.kind === "node" ? this.labels(entity.label) : entity.label);

  fps(): number {
    return this.rate.perSecond(performance.now());
  }

  // Drawing ------------------------------------------------------------------

  request(): void {
    if (this.scheduled === 0) this.scheduled = requestAnimationFrame((time) => this.tick(time));
  }

  private tick(time: number): void {
    this.scheduled = 0;
    if (this.scene === null) return;
    const moving = this.draw(time);
    if (moving) this.request();
    else this.rate.pause();
  }

  private draw(time: number): boolean {
    const passed = Math.min(100, time - this.lastDraw);
    this.lastDraw = time;
    const flying = this.camera.advance(time);
    const gliding = this.entities.advance(time, this.still);
    const discs = this.discs.advance(time, this.still);
    // Where drawing takes long, each update is one picture.
    const atOnce = this.still || isHeavy(this);
    const easing = this.edges.ease(atOnce ? 1 : 1 - Math.exp(-passed / EASE_MS));
    this.rate.drawn(time);
    const copied = this.painter.paint(this.picture(), time, gliding || discs);
    countFrame();
    if (flying || gliding || discs) this.onMoved();
    return flying || gliding || discs || easing || copied;
  }

  private picture(): Picture {
    const { k, x, y } = this.camera.transform;
    const ring =
      document.activeElement === this.canvas && this.canvas.matches(":focus-visible")
        ? this.indexOf(this.focused)
        : -1;
    const focus = this.indexOf(this.hovered ?? this.pinned);
    return {
      palette: this.ctx.palette,
      width: this.box.width,
      height: this.box.height,
      ratio: this.ratio,
      k,
      tx: x,
      ty: y,
      entities: this.entities,
      discs: this.discs,
      edges: this.edges,
      focus: focus >= 0 ? focus : ring,
      ring,
      lit: this.lit,
      litGroups: this.litGroups,
      isNamed: ({ id, name }) => id === this.open || `b:${name}` === (this.hovered ?? this.pinned),
      inside: (group) => this.inside(group),
      labelOf: this.labelOf,
      edgeFocus: this.hoveredEdge,
      alerts: this.alerts(),
    };
  }

  private inside(group: number): string {
    const { topology, frame } = this.ctx.store.shown;
    const nodes = topology?.group(group)?.nodes ?? [];
    const { msgs, bytes } = flowOf(this.flows?.get(group, group), frame, nodes);
    return this.options.measure === "msgs" ? messageRate(msgs) : byteRate(bytes);
  }

  private alertsOf: readonly unknown[] | null = null;
  private alertMap = new Map<string, "warning" | "critical">();

  private alerts(): ReadonlyMap<string, "warning" | "critical"> {
    const { findings } = this.ctx.store.shown;
    if (this.alertsOf === findings) return this.alertMap;
    this.alertsOf = findings;
    this.alertMap = new Map();
    for (const { severity, where } of this.ctx.store.triage.open(findings)) {
      if (severity === "info" || where.node === undefined) continue;
      if (this.alertMap.get(where.node) !== "critical") this.alertMap.set(where.node, severity);
    }
    return this.alertMap;
  }
}

/** Nothing came, went or moved between groups: the places stand. */
function sameShape(a: Topology, b: Topology): boolean {
  if (a.nodes.length !== b.nodes.length || a.groups.length !== b.groups.length) return false;
  if (!b.groups.every((group) => a.group(group.id)?.name === group.name)) return false;
  return b.nodes.every((node) => {
    const old = a.node(node.id);
    return (
      old?.name === node.name &&
      old.groups.length === node.groups.length &&
      old.groups.every((group, i) => group === node.groups[i])
    );
  });
}
