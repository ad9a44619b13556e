// SPDX-License-Identifier: Apache-2.0
// Pointer and keys on the map.
import type { Ctx } from "../../ui/ctx";
import type { Entity } from "../../model/scene";
import type { GroupView } from "./view";

export interface InputActions {
  pointed(): void;
  enter(entity: Entity): void;
  openGroup(group: number): void;
  leave(): void;
  search(): void;
  describe(entity: Entity): string;
}

const DIRECTIONS: Record<string, [number, number]> = {
  ArrowLeft: [-1, 0],
  ArrowRight: [1, 0],
  ArrowUp: [0, -1],
  ArrowDown: [0, 1],
};
const PAN_PX = 80;

export class Input {
  private readonly ended = new AbortController();
  private readonly removeKeys: () => void;

  constructor(
    private readonly ctx: Ctx,
    private readonly view: GroupView,
    private readonly actions: InputActions,
  ) {
    const { canvas } = view;
    canvas.setAttribute("role", "application");
    canvas.setAttribute(
      "aria-label",
      "Map of groups and nodes. Arrow keys go from one to the next, Enter opens. The same is in the list beside it.",
    );
    const on = <K extends keyof HTMLElementEventMap>(
      type: K,
      run: (event: HTMLElementEventMap[K]) => void,
    ) => canvas.addEventListener(type, run, { signal: this.ended.signal });
    on("pointermove", (event) => this.move(event));
    on("pointerleave", () => this.point(null, -1));
    on("click", (event) => this.click(event));
    on("dblclick", (event) => this.doubleClick(event));
    on("keydown", (event) => this.key(event));
    on("focus", () => {
      if (view.focused === null || view.indexOf(view.focused) < 0)
        view.focused = view.scene?.entities[0]?.key ?? null;
      actions.pointed();
    });
    on("blur", () => actions.pointed());
    const section = "Map";
    this.removeKeys = ctx.keys.add(
      { key: "/", text: "Find a node or group", section, run: () => actions.search() },
      { key: "+", text: "Zoom in", section, run: () => view.zoomBy(1.5) },
      { key: "-", text: "Zoom out", section, run: () => view.zoomBy(1 / 1.5) },
      { key: "0", text: "Show all", section, run: () => view.fit() },
      {
        key: "Escape",
        text: "Leave: what is pinned, the search, the group, the zoom",
        section,
        run: () => actions.leave(),
      },
      {
        key: "f",
        text: "Focus the map: arrow keys go from node to node, Enter opens, Shift + arrow pans",
        section,
        run: () => canvas.focus(),
      },
    );
  }

  destroy(): void {
    this.ended.abort();
    this.removeKeys();
  }

  private move(event: PointerEvent): void {
    if (event.pointerType === "touch" || event.buttons !== 0) return;
    const hit = this.view.hit(event.offsetX, event.offsetY, 4);
    this.point(hit.entity?.key ?? null, hit.edge);
  }

  private point(key: string | null, edge: number): void {
    const { view } = this;
    if (view.hovered === key && view.hoveredEdge === edge) return;
    view.hovered = key;
    view.hoveredEdge = edge;
    view.canvas.classList.toggle("over", key !== null);
    this.actions.pointed();
  }

  private click(event: MouseEvent): void {
    const { view } = this;
    const coarse = matchMedia("(pointer: coarse)").matches;
    const hit = view.hit(event.offsetX, event.offsetY, coarse ? 14 : 4);
    if (hit.entity?.kind === "bubble") return this.actions.openGroup(hit.entity.groups[0]);
    view.pinned = hit.entity !== null && view.pinned !== hit.entity.key ? hit.entity.key : null;
    if (hit.entity !== null) view.focused = hit.entity.key;
    // A finger does not hover: it shows an edge's numbers by touching it.
    view.hoveredEdge = hit.edge;
    this.actions.pointed();
  }

  private doubleClick(event: MouseEvent): void {
    const { view } = this;
    const hit = view.hit(event.offsetX, event.offsetY, 6);
    if (hit.entity !== null) return this.actions.enter(hit.entity);
    const disc = view.discAt(event.offsetX, event.offsetY);
    if (disc !== null && view.open !== disc) this.actions.openGroup(disc);
  }

  private key(event: KeyboardEvent): void {
    const { view } = this;
    const direction = DIRECTIONS[event.key];
    if (direction !== undefined && event.shiftKey) {
      view.camera.panBy(-direction[0] * PAN_PX, -direction[1] * PAN_PX);
    } else if (direction !== undefined) {
      const next = view.next(...direction);
      if (next !== null) {
        view.focused = next.key;
        // A resting pointer no longer says what is looked at.
        view.hovered = view.pinned = null;
        view.hoveredEdge = -1;
        this.ctx.announce(this.actions.describe(next));
        this.actions.pointed();
      }
    } else if (event.key === "Enter") {
      const at = view.indexOf(view.focused);
      if (at >= 0 && view.scene !== null) this.actions.enter(view.scene.entities[at]);
    } else return;
    event.preventDefault();
    event.stopPropagation();
  }
}
