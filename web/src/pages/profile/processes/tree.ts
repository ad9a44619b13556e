// SPDX-License-Identifier: Apache-2.0
// The tree of processes: who began whom. Siblings that are alike are one row.
import { children as fill, h, styled, text as setText } from "../../../lib/dom";
import { count } from "../../../lib/format";
import { type Branch, getTree, type Tree } from "../answers";
import { lasting } from "../range";
import { ancestors, inSight, shutAtFirst, type Twig } from "./tree-model";
import { linkButton } from "../parts";
import { Still } from "../still";

/** Rows that are asked for, and those that a browser makes. */
const ROWS = 2000;
const MADE = 600;
const INDENT_PX = 16;

export interface TreeEvents {
  opened(process: number): void;
  /** The check of a process, which has a lane or not. */
  check(branch: Branch): HTMLElement;
  /** All that begin in this function. */
  searched(entry: string): void;
  failed(message: string): void;
}

export class ProcessTree {
  readonly root = h("div", { class: "profile-tree", "data-testid": "profile-tree" });
  private readonly says = h("p", { class: "profile-says muted num", role: "status" });
  private readonly body = h("tbody", {});
  private rows: readonly Branch[] = [];
  private shut = new Set<number>();
  private readonly still = new Still(
    () => this.root,
    (message) => this.events.failed(message),
  );
  private marked: number | null = null;

  constructor(private readonly events: TreeEvents) {
    const head = ["Lane", "Process", "Runs", "Waits for a scheduler", "Waits", "Received", "Sent"];
    fill(
      this.root,
      this.says,
      h(
        "div",
        { class: "table-scroll profile-scroll" },
        h(
          "table",
          { class: "data" },
          h("caption", { class: "visually-hidden" }, "The tree of processes"),
          h(
            "thead",
            {},
            h(
              "tr",
              {},
              ...head.map((label, i) => h("th", { scope: "col", class: classes(i) }, label)),
            ),
          ),
          this.body,
        ),
      ),
    );
  }

  /** Asks once: it is of the whole recording. */
  show(): void {
    if (this.rows.length > 0) this.draw();
    const question = async () => {
      const tree = await getTree(ROWS);
      return () => this.answered(tree);
    };
    this.still.ask("all", question, 0);
  }

  private answered({ rows, all, below }: Tree): void {
    this.rows = rows;
    this.shut = shutAtFirst(rows);
    const left = all - rows.length;
    setText(
      this.says,
      "Of the whole recording: of three or more siblings that are alike, the one that ran longest is shown" +
        (left > 0 ? `; ${count(left)} rows of the deepest levels are left out` : "") +
        (below > 0 ? `; ${count(below)} processes are below siblings that are left out` : "") +
        ".",
    );
    this.mark(this.marked);
  }

  /** The way to the chosen one is open. */
  mark(process: number | null): void {
    this.marked = process;
    if (process !== null) for (const at of ancestors(this.rows, process)) this.shut.delete(at);
    if (this.rows.length > 0) this.draw();
  }

  draw(): void {
    const focused =
      document.activeElement instanceof HTMLElement && this.root.contains(document.activeElement)
        ? document.activeElement.dataset["at"]
        : undefined;
    fill(this.body, ...inSight(this.rows, this.shut, MADE).map((twig) => this.line(twig)));
    if (focused !== undefined)
      this.root.querySelector<HTMLElement>(`[data-at="${focused}"]`)?.focus();
  }

  private line(twig: Twig): HTMLElement {
    const { branch } = twig;
    const cells = [
      branch.omitted > 0 ? "" : this.events.check(branch),
      this.name(twig),
      lasting(branch.run),
      lasting(branch.runnable),
      lasting(branch.wait),
      count(branch.received),
      count(branch.sent),
    ];
    return h(
      "tr",
      {
        class: branch.omitted > 0 ? "muted" : branch.process === this.marked ? "marked" : null,
      },
      ...cells.map((cell, i) => h("td", { class: classes(i) }, cell)),
    );
  }

  private name({ branch, at, hasMore, open }: Twig): HTMLElement {
    const toggle = hasMore
      ? h(
          "button",
          {
            type: "button",
            class: "profile-twig",
            "data-at": at,
            "aria-expanded": String(open),
            "aria-label": `What ${branch.name} began`,
            onclick: () => {
              if (open) this.shut.add(at);
              else this.shut.delete(at);
              this.draw();
            },
          },
          open ? "▾" : "▸",
        )
      : h("span", { class: "profile-twig" });
    const text =
      branch.omitted > 0
        ? linkButton(
            `${count(branch.omitted)} siblings alike: ${branch.entry || "where they begin is not known"}`,
            () => this.events.searched(branch.entry),
            "Search them",
          )
        : linkButton(
            branch.name,
            () => this.events.opened(branch.process),
            `${branch.name} ${branch.entry}`,
          );
    return styled(
      h("span", { class: "profile-branch" }, toggle, text),
      "padding-left",
      // However deep it is, its name has room.
      `min(${branch.depth * INDENT_PX}px, 30%)`,
    );
  }
}

/** The check, the name, numbers; some of these only where there is room. */
const CLASSES = ["profile-narrow", "profile-name", "num", "num wide profile-runnable"];

const classes = (i: number): string => CLASSES[i] ?? "num wide";
