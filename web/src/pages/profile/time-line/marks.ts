// SPDX-License-Identifier: Apache-2.0
// Operations on groups as marks on the time line, on the row of their node and on the lane of the process that called.
import { h, set, text as setText } from "../../../lib/dom";
import type { Palette } from "../../../ui/theme";
import { getOperations, type Node, type Operation } from "../answers";
import type { Layout, Row } from "./lanes";
import { binsOf, foundText, type Marks, mostMarks, operationsOf } from "./marks-model";
import { place, type Range, span } from "../range";
import { messageOf } from "../../../lib/format";

export interface MarksWish {
  range: Range;
  lanes: readonly number[];
  width: number;
}

export class GroupMarks {
  readonly button: HTMLButtonElement;
  readonly says = h("p", {
    class: "profile-says muted num",
    role: "status",
    "data-testid": "profile-marks",
    hidden: true,
  });
  private on = true;
  private shown: Marks | null = null;
  private of = "";

  constructor(private readonly changed: (isOther: boolean) => void) {
    this.button = h(
      "button",
      {
        type: "button",
        class: "profile-key key-groups",
        title: "Operations on groups, where and when they were called",
        "aria-pressed": "true",
        onclick: () => this.toggle(),
      },
      h("i", {}),
      "group operations",
    );
  }

  get isOn(): boolean {
    return this.on;
  }

  get marks(): Marks | null {
    return this.on ? this.shown : null;
  }

  /** Asks for what is in sight, if that is something else than before. */
  async ask({ range, lanes, width }: MarksWish): Promise<void> {
    const of = JSON.stringify([range, lanes, width]);
    if (of === this.of || !this.on) return;
    this.of = of;
    let isAnswered = false;
    try {
      const found = await getOperations(range, [...lanes], mostMarks(width));
      if (of !== this.of) return;
      isAnswered = true;
      this.shown = { part: range, found };
      this.say(foundText(found));
    } catch (error) {
      if (of !== this.of) return;
      this.shown = null;
      this.say(messageOf(error));
    }
    this.changed(false);
    // Asked again when the time line moves or is come back to, and not by what was just called.
    if (!isAnswered && of === this.of) this.of = "";
  }

  private say(words: string): void {
    setText(this.says, words);
    this.says.hidden = words === "";
  }

  private toggle(): void {
    this.on = !this.on;
    set(this.button, "aria-pressed", String(this.on));
    if (!this.on) {
      this.of = "";
      this.say("");
    }
    this.changed(true);
  }
}

export interface MarksPicture {
  palette: Palette;
  layout: Layout;
  range: Range;
  nodes: readonly Node[];
  marks: Marks | null;
  /** The moment that the replay shows. */
  moment: number | null;
}

export function paintMarks(c: CanvasRenderingContext2D, p: MarksPicture): void {
  const { layout, palette, marks } = p;
  for (const row of layout.rows) {
    if (row.kind === "groups") {
      c.fillStyle = palette.bg;
      c.globalAlpha = 0.5;
      c.fillRect(0, row.y, layout.width, row.height);
      c.globalAlpha = 1;
    } else if (row.kind !== "process") continue;
    if (marks === null) continue;
    if (marks.found.cells.length > 0) paintCounts(c, p, marks, row);
    else for (const one of operationsOf(marks.found.rows, row, p.nodes)) paintMark(c, p, one, row);
  }
  if (p.moment === null) return;
  const x = Math.round(place(p.moment, p.range, layout.width)) + 0.5;
  c.strokeStyle = palette.accent;
  c.lineWidth = 1;
  c.setLineDash([2, 2]);
  c.beginPath();
  c.moveTo(x, layout.axis);
  c.lineTo(x, layout.height);
  c.stroke();
  c.setLineDash([]);
}

/** Full where it did what was asked, a cross where it did not, empty where its end is not known. */
function paintMark(
  c: CanvasRenderingContext2D,
  { layout, palette, range }: MarksPicture,
  one: Operation,
  row: Row,
): void {
  const x = place(one.at, range, layout.width);
  const end = place(one.at + (one.took ?? 0), range, layout.width);
  if (end < -8 || x > layout.width + 8) return;
  const [middle, size] = row.kind === "groups" ? [row.y + row.height / 2, 4] : [row.y + 4, 3.5];
  c.strokeStyle = palette.text;
  c.lineWidth = 1.25;
  if (row.kind === "groups" && end - x > 1) {
    c.fillStyle = palette.accent;
    c.fillRect(x, middle - 1.5, end - x, 3);
  }
  c.beginPath();
  if (one.ok === false) {
    for (const side of [-1, 1]) {
      c.moveTo(x - size, middle - side * size);
      c.lineTo(x + size, middle + side * size);
    }
    c.strokeStyle = palette.critical;
    c.lineWidth = 2;
    c.stroke();
    c.lineWidth = 1;
    return;
  }
  c.moveTo(x, middle - size);
  c.lineTo(x + size, middle);
  c.lineTo(x, middle + size);
  c.lineTo(x - size, middle);
  c.closePath();
  c.fillStyle = one.ok === true ? palette.accent : palette.surface;
  c.fill();
  c.stroke();
  c.lineWidth = 1;
}

function paintCounts(
  c: CanvasRenderingContext2D,
  { layout, palette, range }: MarksPicture,
  marks: Marks,
  row: Row,
): void {
  const bins = binsOf(marks, row, span(range) / layout.width);
  const height = Math.min(13, row.height);
  c.font = `10px ${palette.font}`;
  c.textAlign = "center";
  c.textBaseline = "middle";
  for (const { from, to, count } of bins) {
    const [a, b] = [place(from, range, layout.width), place(to, range, layout.width)];
    if (b < 0 || a > layout.width) continue;
    const text = String(count);
    const width = Math.min(b - a - 2, c.measureText(text).width + 8);
    const x = (a + b) / 2;
    c.fillStyle = palette.surface;
    c.strokeStyle = palette.accent;
    c.lineWidth = 1;
    c.beginPath();
    c.rect(x - width / 2, row.y + 0.5, width, height - 1);
    c.fill();
    c.stroke();
    c.fillStyle = palette.text;
    c.fillText(text, x, row.y + height / 2 + 0.5);
  }
}
