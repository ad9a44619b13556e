// SPDX-License-Identifier: Apache-2.0
// The time line: a canvas that zooms with the wheel, two fingers, drags and keys, and asks for what it shows.
import type { Ctx } from "../../../ui/ctx";
import { h, text as setText } from "../../../lib/dom";
import { number, messageOf } from "../../../lib/format";
import { visible } from "../../../lib/visible";
import { type About, getWindow, type Process, type Segment, type Window } from "../answers";
import { MessageArrows } from "./arrows";
import { laneText } from "./lane-words";
import { layout, type Layout, type Row, rowAt } from "./lanes";
import { GroupMarks } from "./marks";
import { marksText, operationsAt, operationsOf } from "./marks-model";
import { endOf } from "./groups-model";
import { paint } from "./paint";
import { segmentAt, stepText } from "./path-model";
import {
  clamped,
  exactly,
  lasting,
  panned,
  type Range,
  span,
  timeAt,
  wanted,
  whole,
  zoomed,
} from "../range";

const WHEEL = 0.0022;
const KEY_ZOOM = 1.6;
const KEY_PAN = 0.2;
/** With less of the time line in sight than this, the page scrolls to it. */
const IN_SIGHT_PX = 220;
/** A shorter drag is a click. */
const DRAG_PX = 4;

export interface TimelineEvents {
  chosen(process: number): void;
  moved(range: Range): void;
  /** A step of the critical path is chosen. */
  stepped(step: Segment): void;
  /** An operation on groups is chosen, which had its effect at this time. */
  operated(moment: number): void;
  failed(message: string): void;
}

const HINT =
  "Wheel or two fingers zoom, dragging moves, dragging on the graph chooses a part; + − ← → and Home do the same.";

export class Timeline {
  readonly root: HTMLElement;
  private readonly canvas = h("canvas", {
    class: "profile-canvas",
    tabindex: 0,
    role: "application",
    "aria-label":
      "Time line. Plus and minus zoom, arrow keys move, Home shows the whole run, up and down choose a process, Enter opens it.",
  });
  private readonly says = h("p", { class: "profile-says muted num" });
  readonly messages = new MessageArrows(() => {
    this.redraw();
    this.wish();
  });
  readonly marks = new GroupMarks((isOther) => {
    if (isOther) this.sized();
    else this.redraw();
    this.describe();
    this.wish();
  });
  private readonly hasGroups: boolean;
  private readonly resize: ResizeObserver;
  private lanes: readonly Process[] = [];
  private window: Window | null = null;
  private drawn: Layout;
  private range: Range;
  private marked: number | null = null;
  private path: readonly Segment[] = [];
  private moment: number | null = null;
  private x: number | null = null;
  private row: Row | null = null;
  private brush: [number, number] | null = null;
  private readonly pointers = new Map<number, [number, number]>();
  private pressed: { x: number; y: number; range: Range; graph: boolean; moved: boolean } | null =
    null;
  private asking = false;
  private again = false;
  private ended = false;
  private frame = 0;

  constructor(
    private readonly ctx: Ctx,
    private readonly about: About,
    range: Range,
    private readonly events: TimelineEvents,
  ) {
    this.range = range;
    this.messages.says.hidden = true;
    this.hasGroups = about.items.includes("s_group");
    this.root = h(
      "div",
      { class: "profile-timeline" },
      this.canvas,
      this.says,
      this.messages.says,
      this.marks.says,
    );
    this.drawn = layout(1, [], []);
    const { canvas } = this;
    canvas.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    canvas.addEventListener("pointerdown", (event) => this.down(event));
    canvas.addEventListener("pointermove", (event) => this.move(event));
    for (const name of ["pointerup", "pointercancel"] as const)
      canvas.addEventListener(name, (event) => this.up(event));
    canvas.addEventListener("pointerleave", () => this.point(null, null));
    canvas.addEventListener("dblclick", (event) => this.zoom(4, this.share(event.offsetX)));
    canvas.addEventListener("keydown", (event) => this.press(event));
    for (const name of ["focus", "blur"] as const)
      canvas.addEventListener(name, () => this.redraw());
    this.resize = new ResizeObserver(() => this.sized());
    this.resize.observe(this.root);
    this.describe();
  }

  get shown(): Range {
    return this.range;
  }

  /** Which processes have lanes. */
  show(lanes: readonly Process[]): void {
    this.lanes = lanes;
    this.row = null;
    this.sized();
    this.ask();
  }

  mark(process: number | null): void {
    this.marked = process;
    this.redraw();
    this.wish();
  }

  /** The critical path; none takes its row away. */
  trace(path: readonly Segment[]): void {
    const had = this.path.length > 0;
    this.path = path;
    if (had === path.length > 0) this.redraw();
    else this.sized();
  }

  /** The moment that the replay of groups shows. */
  at(moment: number | null): void {
    if (moment === this.moment) return;
    this.moment = moment;
    this.redraw();
  }

  go(range: Range): void {
    if (range.from === this.range.from && range.to === this.range.to) return;
    this.range = range;
    this.redraw();
    this.ask();
    this.events.moved(range);
  }

  /** Scrolls to the time line where hardly any of it is in sight. */
  reveal(): void {
    const { top, bottom } = this.canvas.getBoundingClientRect();
    if (bottom < IN_SIGHT_PX || top > innerHeight - IN_SIGHT_PX)
      this.root.parentElement?.scrollIntoView({ block: "start" });
  }

  zoom(factor: number, share = 0.5): void {
    this.go(zoomed(this.range, factor, share, this.about.duration));
  }

  pan(share: number): void {
    this.go(panned(this.range, share, this.about.duration));
  }

  all(): void {
    this.go(whole(this.about.duration));
  }

  redraw(): void {
    if (this.frame !== 0 || this.ended) return;
    this.frame = requestAnimationFrame(() => {
      this.frame = 0;
      this.draw();
    });
  }

  destroy(): void {
    this.ended = true;
    cancelAnimationFrame(this.frame);
    this.resize.disconnect();
  }

  // Data ------------------------------------------------------------------

  /** One question at a time; the newest wish wins. */
  private ask(): void {
    if (this.asking) this.again = true;
    else void this.fetch();
  }

  private async fetch(): Promise<void> {
    this.asking = true;
    do {
      this.again = false;
      const { duration, limits } = this.about;
      const processes = this.lanes.map(({ process }) => process);
      const { from, to, columns } = wanted(
        this.range,
        this.drawn.width,
        processes.length,
        duration,
        limits,
      );
      try {
        const window = await getWindow(from, to, columns, processes);
        if (this.ended) return;
        this.window = window;
        this.redraw();
        this.describe();
        if (!this.again) this.wish();
      } catch (error) {
        if (!this.ended) this.events.failed(messageOf(error));
      }
    } while (this.again && !this.ended);
    this.asking = false;
  }

  /** Messages are asked for when the picture stands still. */
  private wish(): void {
    if (this.ended || this.window === null || this.pressed !== null) return;
    if (this.hasGroups)
      void this.marks.ask({
        range: this.range,
        lanes: this.lanes.map(({ process }) => process),
        width: this.drawn.width,
      });
    if (!this.about.has_messages) return;
    void this.messages.ask({
      range: this.range,
      lanes: this.lanes.map(({ process }) => process),
      process: this.marked,
      near: this.window.exact,
    });
  }

  // Drawing ---------------------------------------------------------------

  private sized(): void {
    const width = this.root.clientWidth;
    if (width === 0) return;
    const before = this.drawn.width;
    this.drawn = layout(
      width,
      this.about.schedulers,
      this.lanes,
      this.path.length > 0,
      this.about.nodes,
      this.hasGroups && this.marks.isOn,
    );
    const ratio = this.ratio;
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(this.drawn.height * ratio);
    this.canvas.style.height = `${this.drawn.height}px`;
    this.draw();
    if (before !== this.drawn.width) this.ask();
  }

  private get ratio(): number {
    return Math.min(2, devicePixelRatio || 1);
  }

  private draw(): void {
    const c = this.canvas.getContext("2d");
    if (c === null) return;
    const { canvas } = this;
    // Read by e2e/profile-opening.mjs, which measures how long that took.
    if ((this.window?.lanes.length ?? 0) > 0) canvas.dataset["drawn"] ??= String(performance.now());
    paint(c, {
      palette: this.ctx.palette,
      layout: this.drawn,
      range: this.range,
      window: this.window,
      online: this.about.online,
      nodes: this.about.nodes,
      ratio: this.ratio,
      marked: this.marked,
      x: this.x,
      row: this.row,
      brush: this.brush,
      path: this.path,
      arrows: this.messages.arrows,
      marks: this.marks.marks,
      moment: this.moment,
      ring: document.activeElement === canvas && canvas.matches(":focus-visible"),
    });
  }

  /** What is below the pointer, in words; else how to move. */
  private describe(): void {
    const { x, row, range, window: w } = this;
    if (x === null || w === null) {
      this.canvas.title = "";
      const near = w !== null && w.lanes.some((lane) => lane.intervals !== null);
      const shown = `${lasting(span(range))} of ${lasting(this.about.duration)}`;
      const what = near
        ? "each interval"
        : `shares of columns of ${lasting(w?.width ?? span(range) / this.drawn.width)}`;
      return setText(this.says, `${shown}, ${what}. ${HINT}`);
    }
    const t = timeAt(x, range, this.drawn.width);
    const column = Math.floor((t - w.from) / w.width);
    const at = `At ${exactly(t, range, this.drawn.width)}: `;
    const pixelNs = span(range) / this.drawn.width;
    const marks =
      row === null ? "" : marksText(this.marks.marks, row, this.about.nodes, t, pixelNs);
    // As a tooltip, too, beside the mark.
    this.canvas.title = visible(marks);
    if (row?.kind === "process")
      return setText(
        this.says,
        at + laneText(row, w, t, column) + (marks === "" ? "" : `. ${marks}`),
      );
    if (row?.kind === "groups")
      return setText(this.says, at + (marks === "" ? "no operation on groups" : marks));
    if (row?.kind === "scheduler") {
      const one = w.schedulers.find(({ scheduler }) => scheduler === row.id);
      return setText(this.says, `${at}${row.label} awake ${(one?.awake[column] ?? 0) / 10} %`);
    }
    if (row?.kind === "path") {
      const step = segmentAt(this.path, t);
      return setText(this.says, at + (step === undefined ? "not on the path" : stepText(step)));
    }
    if (row?.kind === "node") {
      const one = w.nodes.find(({ node }) => node === row.id);
      const [runs, waits] = [one?.running[column], one?.runnable[column]];
      return setText(
        this.says,
        `${at}${row.label}: ${number(runs ?? 0)} run, ${number(waits ?? 0)} wait for a scheduler`,
      );
    }
    setText(
      this.says,
      `${at}${number(w.running[column])} run, ${number(w.runnable[column])} wait for a scheduler`,
    );
  }

  // Input -----------------------------------------------------------------

  private share(x: number): number {
    return Math.min(1, Math.max(0, (x - this.drawn.left) / this.drawn.width));
  }

  private wheel(event: WheelEvent): void {
    // Over the names, and where there is nothing more to zoom out of, the page scrolls.
    const isWhole = span(this.range) >= this.about.duration;
    const sideways = Math.abs(event.deltaX) > Math.abs(event.deltaY) || event.shiftKey;
    if (event.offsetX < this.drawn.left || (isWhole && (sideways || event.deltaY > 0))) return;
    event.preventDefault();
    const unit = event.deltaMode === 1 ? 16 : 1;
    if (sideways) this.pan(((event.deltaX || event.deltaY) * unit) / this.drawn.width);
    else this.zoom(Math.exp(-event.deltaY * unit * WHEEL), this.share(event.offsetX));
  }

  private down(event: PointerEvent): void {
    if (event.button !== 0) return;
    this.pointers.set(event.pointerId, [event.offsetX, event.offsetY]);
    this.canvas.setPointerCapture(event.pointerId);
    this.pressed = {
      x: event.offsetX,
      y: event.offsetY,
      range: this.range,
      graph: event.offsetY < this.drawn.graph.y + this.drawn.graph.height,
      moved: false,
    };
    this.brush = null;
  }

  private move(event: PointerEvent): void {
    const [x, y] = [event.offsetX, event.offsetY];
    const before = this.pointers.get(event.pointerId);
    if (this.pointers.size === 2 && before !== undefined) return this.pinch(event, before);
    const { pressed } = this;
    if (pressed === null || before === undefined)
      return this.point(x < this.drawn.left ? null : x - this.drawn.left, y);
    if (Math.abs(x - pressed.x) < DRAG_PX && !pressed.moved) return;
    pressed.moved = true;
    const { left, width } = this.drawn;
    if (pressed.graph) {
      const inside = (at: number) => Math.min(width, Math.max(0, at - left));
      this.brush = [inside(pressed.x), inside(x)];
      this.redraw();
    } else this.go(panned(pressed.range, (pressed.x - x) / width, this.about.duration));
  }

  private pinch(event: PointerEvent, before: [number, number]): void {
    const other = [...this.pointers].find(([id]) => id !== event.pointerId)?.[1];
    if (other === undefined) return;
    const now: [number, number] = [event.offsetX, event.offsetY];
    const apart = (a: [number, number]) =>
      Math.max(20, Math.hypot(a[0] - other[0], a[1] - other[1]));
    const middle = (a: [number, number]) => (a[0] + other[0]) / 2;
    const moved = panned(
      this.range,
      (middle(before) - middle(now)) / this.drawn.width,
      this.about.duration,
    );
    this.go(
      zoomed(moved, apart(now) / apart(before), this.share(middle(now)), this.about.duration),
    );
    this.pointers.set(event.pointerId, now);
    this.brush = null;
    if (this.pressed !== null) this.pressed.moved = true;
  }

  private up(event: PointerEvent): void {
    const { pressed, brush } = this;
    this.pointers.delete(event.pointerId);
    if (this.pointers.size > 0) {
      // The finger that stays goes on from here.
      const [x, y] = [...this.pointers.values()][0] as [number, number];
      this.pressed = { x, y, range: this.range, graph: false, moved: true };
      return;
    }
    this.pressed = null;
    this.brush = null;
    if (pressed === null || event.type === "pointercancel") return this.redraw();
    if (brush !== null && Math.abs(brush[0] - brush[1]) >= DRAG_PX) {
      const [a, b] = [Math.min(...brush), Math.max(...brush)];
      const at = (x: number) => timeAt(x, this.range, this.drawn.width);
      this.go(clamped(at(a), at(b), this.about.duration));
    } else if (!pressed.moved) {
      const row = rowAt(this.drawn.rows, pressed.y);
      if (row?.kind === "process") this.events.chosen(row.id);
      const t = timeAt(pressed.x - this.drawn.left, this.range, this.drawn.width);
      const step = row?.kind === "path" ? segmentAt(this.path, t) : undefined;
      if (step !== undefined) this.events.stepped(step);
      if (row?.kind === "groups") this.operated(row, t);
    }
    this.redraw();
    this.wish();
  }

  private operated(row: Row, t: number): void {
    const rows = this.marks.marks?.found.rows ?? [];
    const own = operationsOf(rows, row, this.about.nodes);
    const [one] = operationsAt(own, t, span(this.range) / this.drawn.width);
    if (one !== undefined) this.events.operated(endOf(one));
  }

  private point(x: number | null, y: number | null): void {
    this.x = x;
    this.row = y === null ? null : (rowAt(this.drawn.rows, y) ?? null);
    const { row } = this;
    const leads = ["process", "path", "groups"];
    this.canvas.classList.toggle("over", row !== null && leads.includes(row.kind));
    this.redraw();
    this.describe();
  }

  private press(event: KeyboardEvent): void {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const acts: Record<string, () => void> = {
      ArrowLeft: () => this.pan(-KEY_PAN),
      ArrowRight: () => this.pan(KEY_PAN),
      ArrowUp: () => this.step(-1),
      ArrowDown: () => this.step(1),
      "+": () => this.zoom(KEY_ZOOM),
      "=": () => this.zoom(KEY_ZOOM),
      "-": () => this.zoom(1 / KEY_ZOOM),
      Home: () => this.all(),
      Enter: () => this.row?.kind === "process" && this.events.chosen(this.row.id),
    };
    const act = acts[event.key];
    if (act === undefined) return;
    act();
    event.preventDefault();
    event.stopPropagation();
  }

  private step(by: number): void {
    const rows = this.drawn.rows.filter(({ kind }) => kind === "process");
    if (rows.length === 0) return;
    const at = rows.findIndex((row) => row === this.row);
    this.row = rows[Math.min(rows.length - 1, Math.max(0, at < 0 ? 0 : at + by))] ?? null;
    this.x = this.drawn.width / 2;
    this.describe();
    this.ctx.announce(this.says.textContent ?? "");
    this.redraw();
  }
}
