// SPDX-License-Identifier: Apache-2.0
// Matrix: who sends how much to whom, groups by groups; a cell opens into its nodes.
import type { Ctx, MountedPage, Page } from "../../ui/ctx";
import { countFrame } from "../../ui/hooks";
import { byteRate, number } from "../../lib/format";
import { type Choice, choice, emptyState } from "../../ui/parts";
import { children as fill, h, text } from "../../lib/dom";
import { visible } from "../../lib/visible";
import { FREE, FREE_NAME, HIDDEN, HIDDEN_NAME } from "../../model/flows";
import { groupMatrix, type Label, type Matrix, nodeMatrix } from "../../model/matrix";
import type { Change } from "../../store/signals";
import type { Topology } from "../../model/topology";
import { labeller } from "../../model/node-names";
import { scaleChoice, trafficLegend } from "../../ui/traffic-legend";
import { absolute, type Measure, relative, type Scale } from "../../model/traffic-scale";
import { type Grid, gridFor, paintMatrix } from "./paint";
import "./matrix.css";

/** The names that an address has for nodes in no group. */
const PLACES: ReadonlyMap<string, number> = new Map([
  [FREE_NAME, FREE],
  [HIDDEN_NAME, HIDDEN],
]);

const EMPTY = "The matrix shows who sends to whom as soon as there are groups.";

class MatrixPage implements MountedPage {
  private readonly canvas = h("canvas", {
    class: "matrix-canvas",
    tabindex: 0,
    role: "application",
    "aria-label":
      "Traffic matrix: rows send, columns receive. Arrow keys go from cell to cell, Enter opens.",
  });
  private readonly scroller: HTMLElement;
  private readonly trail = h("h2", { class: "matrix-trail" });
  private readonly says = h("p", { class: "matrix-says muted", role: "status" });
  private readonly measureChoice: Choice<Measure>;
  private readonly scaleChoice: Choice<"" | "relative">;
  private readonly key = h("div", { class: "matrix-key" });
  private readonly empty = h("div", { class: "matrix-empty", hidden: true });
  private readonly resize: ResizeObserver;
  private readonly removeKeys: () => void;
  private matrix: Matrix | null = null;
  private grid: Grid | null = null;
  private at: [number, number] | null = null;
  private label: (one: Label) => string = (one) => one.name;
  private keyOf = "";

  constructor(
    private readonly root: HTMLElement,
    private readonly ctx: Ctx,
  ) {
    root.classList.add("matrix-page");
    this.measureChoice = choice<Measure>(
      "Measure",
      [
        ["msgs", "Messages", "Cells by msg/s"],
        ["bytes", "Bytes", "Cells by bytes/s"],
      ],
      "msgs",
      (measure) => ctx.setQuery({ by: measure === "msgs" ? "" : measure }),
    );
    this.scaleChoice = scaleChoice((scale) => ctx.setQuery({ scale }));
    this.scroller = h("div", { class: "matrix-scroll" }, this.canvas);
    root.append(
      h(
        "header",
        { class: "matrix-head" },
        h("div", { class: "matrix-title" }, this.trail, this.says),
        this.key,
        h("div", { class: "row" }, this.measureChoice.root, this.scaleChoice.root),
      ),
      this.scroller,
      this.empty,
    );
    this.canvas.addEventListener("pointermove", (event) => this.point(event));
    this.canvas.addEventListener("pointerleave", () => this.go(null));
    this.canvas.addEventListener("click", (event) => {
      this.point(event);
      this.enter();
    });
    this.canvas.addEventListener("keydown", (event) => this.press(event));
    this.canvas.addEventListener("focus", () => this.go(this.at ?? [0, 0]));
    this.canvas.addEventListener("blur", () => this.draw());
    this.resize = new ResizeObserver(() => this.draw());
    this.resize.observe(this.scroller);
    this.removeKeys = ctx.keys.add(
      {
        key: "Escape",
        text: "Back to all groups",
        section: "Matrix",
        run: () => this.route() !== null && ctx.go("matrix", null, this.kept()),
      },
      {
        key: "f",
        text: "Focus the matrix: arrow keys go from cell to cell, Enter opens",
        section: "Matrix",
        run: () => this.canvas.focus(),
      },
    );
    this.update(new Set(["frame"]));
  }

  update(change: Change): void {
    if (
      !["frame", "topology", "theme", "route", "connection"].some((kind) =>
        change.has(kind as "frame"),
      )
    )
      return;
    if (change.has("route")) this.at = null;
    const { topology, frame } = this.ctx.store.shown;
    const route = this.route();
    const missing = this.missing();
    this.matrix =
      topology === null || frame === null || missing !== null
        ? null
        : route === null
          ? groupMatrix(topology, frame)
          : nodeMatrix(topology, frame, route[0], route[1]);
    const names = labeller(topology?.nodes.map((node) => node.name) ?? []);
    this.label = (one) => visible(route === null ? one.name : names(one.name));
    this.showHead(topology, route);
    this.showEmpty(missing);
    this.draw();
  }

  destroy(): void {
    this.resize.disconnect();
    this.removeKeys();
    this.root.replaceChildren();
  }

  private get measure(): Measure {
    return this.ctx.route.query["by"] === "bytes" ? "bytes" : "msgs";
  }

  /** Absolute, or over the cells that are shown. */
  private get scale(): Scale {
    const { matrix, measure } = this;
    if (matrix === null || this.ctx.route.query["scale"] !== "relative") return absolute(measure);
    return relative(measure === "msgs" ? matrix.msgs : matrix.bytes, measure);
  }

  private kept(): Record<string, string> {
    const { by, scale } = this.ctx.route.query;
    return { by: by ?? "", scale: scale ?? "" };
  }

  /** The two groups that are open, or null for all groups. */
  private route(): [number, number] | null {
    const { arg, query } = this.ctx.route;
    const { topology } = this.ctx.store.shown;
    if (arg === null || topology === null) return null;
    const id = (name: string) => PLACES.get(name) ?? topology.groupNamed(name)?.id;
    const from = id(arg);
    const to = id(query["to"] ?? arg);
    return from === undefined || to === undefined ? null : [from, to];
  }

  /** A group of the address that is not there. */
  private missing(): string | null {
    const { arg, query } = this.ctx.route;
    const { topology } = this.ctx.store.shown;
    if (topology === null) return null;
    const unknown = (name: string | null | undefined) =>
      name != null && !PLACES.has(name) && topology.groupNamed(name) === undefined;
    return unknown(arg) ? arg : unknown(query["to"]) ? (query["to"] ?? null) : null;
  }

  private showHead(topology: Topology | null, route: [number, number] | null): void {
    const { palette } = this.ctx;
    this.measureChoice.choose(this.measure);
    this.scaleChoice.choose(this.ctx.route.query["scale"] === "relative" ? "relative" : "");
    const name = (id: number) =>
      id === FREE ? FREE_NAME : id === HIDDEN ? HIDDEN_NAME : (topology?.group(id)?.name ?? "");
    const trail =
      route === null
        ? "Groups"
        : route[0] === route[1]
          ? `inside ${name(route[0])}`
          : `${name(route[0])} → ${name(route[1])}`;
    const key = `${trail}${this.measure}${this.scale.low}/${this.scale.high}${palette.dark}${location.hash}`;
    if (key === this.keyOf) return;
    this.keyOf = key;
    fill(
      this.trail,
      ...(route === null
        ? [trail]
        : [h("a", { href: this.ctx.href("matrix", null, this.kept()) }, "Groups"), " › ", trail]),
    );
    this.key.replaceChildren(trafficLegend(this.measure, this.scale, palette.dark, false));
    this.describe();
  }

  private showEmpty(missing: string | null): void {
    const nothing =
      this.matrix === null || this.matrix.rows.length === 0 || this.matrix.columns.length === 0;
    this.empty.hidden = !nothing;
    this.scroller.hidden = nothing;
    if (!nothing) return;
    const [title, words] =
      missing !== null
        ? [`There is no group “${missing}”`, "It may have been deleted, or not yet created."]
        : this.matrix === null
          ? ["Waiting for the cluster", EMPTY]
          : ["No groups yet", EMPTY];
    this.empty.replaceChildren(emptyState(title, words));
  }

  private draw(): void {
    const { matrix, canvas } = this;
    if (matrix === null || this.scroller.hidden) return;
    const c = canvas.getContext("2d") as CanvasRenderingContext2D;
    const { palette } = this.ctx;
    c.font = `450 12px ${palette.font}`;
    const grid = gridFor(
      matrix,
      this.scroller.clientWidth,
      this.scroller.clientHeight,
      (words) => c.measureText(words).width,
      this.label,
    );
    this.grid = grid;
    const ratio = Math.min(2, devicePixelRatio || 1);
    const [width, height] = [Math.round(grid.width * ratio), Math.round(grid.height * ratio)];
    if (canvas.width !== width || canvas.height !== height) {
      canvas.width = width;
      canvas.height = height;
      canvas.style.width = `${grid.width}px`;
      canvas.style.height = `${grid.height}px`;
    }
    const ring = document.activeElement === canvas && canvas.matches(":focus-visible");
    paintMatrix(c, {
      matrix,
      grid,
      palette,
      measure: this.measure,
      scale: this.scale,
      ratio,
      at: this.at,
      ring,
      label: this.label,
    });
    countFrame();
    this.describe();
  }

  private describe(): void {
    text(
      this.says,
      this.at === null
        ? this.route() === null
          ? "Rows send, columns receive. A frame marks traffic inside a group, a cut corner traffic past the gateways. Choose a cell to see its nodes."
          : "Rows send, columns receive. A cut corner marks traffic past the gateways."
        : this.cellText(this.at),
    );
  }

  private cellText([row, column]: [number, number]): string {
    const { matrix } = this;
    const from = matrix?.rows[row];
    const to = matrix?.columns[column];
    if (matrix === null || from === undefined || to === undefined) return "";
    const i = row * matrix.columns.length + column;
    const where =
      from.id === to.id && matrix.kind === "groups"
        ? `Inside ${from.name}`
        : `${from.name} → ${to.name}`;
    const past = matrix.direct[i] === 1 ? ", some of it past the gateways" : "";
    return matrix.msgs[i] > 0
      ? `${where}: ${number(matrix.msgs[i])} msg/s, ${byteRate(matrix.bytes[i])}${past}`
      : `${where}: no traffic`;
  }

  private point(event: PointerEvent | MouseEvent): void {
    const { grid, matrix } = this;
    if (grid === null || matrix === null) return;
    const column = Math.floor((event.offsetX - grid.left) / grid.cellWidth);
    const row = Math.floor((event.offsetY - grid.top) / grid.cellHeight);
    const inside =
      row >= 0 && column >= 0 && row < matrix.rows.length && column < matrix.columns.length;
    this.canvas.classList.toggle("over", inside && matrix.kind === "groups");
    this.go(inside ? [row, column] : null);
  }

  private go(at: [number, number] | null): void {
    if (at?.[0] === this.at?.[0] && at?.[1] === this.at?.[1]) return;
    this.at = at;
    this.draw();
  }

  private press(event: KeyboardEvent): void {
    const { matrix } = this;
    if (matrix === null) return;
    const [row, column] = this.at ?? [0, 0];
    const moves: Record<string, [number, number]> = {
      ArrowUp: [-1, 0],
      ArrowDown: [1, 0],
      ArrowLeft: [0, -1],
      ArrowRight: [0, 1],
    };
    const move = moves[event.key];
    if (move !== undefined) {
      this.go([
        Math.min(matrix.rows.length - 1, Math.max(0, row + move[0])),
        Math.min(matrix.columns.length - 1, Math.max(0, column + move[1])),
      ]);
      this.reveal();
    } else if (event.key === "Enter") this.enter();
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  private reveal(): void {
    const { grid, at, scroller } = this;
    if (grid === null || at === null) return;
    const x = grid.left + at[1] * grid.cellWidth;
    const y = grid.top + at[0] * grid.cellHeight;
    if (x < scroller.scrollLeft + grid.left) scroller.scrollLeft = x - grid.left;
    else if (x + grid.cellWidth > scroller.scrollLeft + scroller.clientWidth)
      scroller.scrollLeft = x + grid.cellWidth - scroller.clientWidth;
    if (y < scroller.scrollTop) scroller.scrollTop = y;
    else if (y + grid.cellHeight > scroller.scrollTop + scroller.clientHeight)
      scroller.scrollTop = y + grid.cellHeight - scroller.clientHeight;
  }

  private enter(): void {
    const { matrix, at, ctx } = this;
    if (matrix === null || at === null) return;
    const from = matrix.rows[at[0]];
    const to = matrix.columns[at[1]];
    if (from === undefined || to === undefined) return;
    if (matrix.kind === "groups")
      ctx.go("matrix", from.name, {
        ...this.kept(),
        ...(to.name === from.name ? {} : { to: to.name }),
      });
    else if (from.id !== HIDDEN) ctx.go("node", from.name);
  }
}

export const page: Page = { mount: (root, ctx) => new MatrixPage(root, ctx) };
