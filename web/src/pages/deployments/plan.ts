// SPDX-License-Identifier: Apache-2.0
// What a file would change, before anybody applies it. Nothing is done here.
import type { Ctx } from "../../ui/ctx";
import { card } from "../../ui/parts";
import { h, prose, text as setText } from "../../lib/dom";
import { count, messageOf, sentence } from "../../lib/format";
import { postJson } from "../../store/http";
import { list } from "./list";

/** What the server takes, in bytes. */
const MOST_BYTES = 49_152;

interface Plan {
  changes: string[];
  steps: string[];
  refused: string[];
}

export class PlanCard {
  readonly root: HTMLElement;
  private readonly text = h("textarea", {
    class: "input plan-text",
    rows: "8",
    spellcheck: "false",
    "aria-label": "The file, as JSON",
    placeholder: "Paste a file of operations here, as JSON",
    "data-testid": "plan-text",
  });
  private readonly pick = h("input", {
    type: "file",
    class: "plan-pick",
    accept: ".json,application/json",
    "aria-label": "Open a file",
    "data-testid": "plan-file",
  });
  private readonly force = h("input", { type: "checkbox" });
  private readonly go = h(
    "button",
    { type: "submit", class: "button button-primary", "data-testid": "plan-go" },
    "Show the plan",
  );
  private readonly problem = h("p", { class: "problem plan-problem", role: "alert", hidden: true });
  private readonly said = h("p", { class: "ops-about", role: "status" });
  private readonly refused = list("ul", "Refused");
  private readonly changes = list("ul", "What would change");
  private readonly steps = list("ol", "Steps, in an order in which they may be done");
  private readonly result = h(
    "div",
    { class: "plan-result", hidden: true, "data-testid": "plan-result" },
    this.said,
    this.refused.root,
    this.changes.root,
    this.steps.root,
  );
  private asked = 0;

  constructor(private readonly ctx: Ctx) {
    const form = h(
      "form",
      { class: "plan-form", "aria-label": "Plan of a file" },
      this.text,
      h("div", { class: "row" }, this.pick),
      h(
        "label",
        { class: "row plan-force" },
        this.force,
        h(
          "span",
          {},
          ...prose(
            "As with `--force`: a group may be without a member, or two groups without a gateway, meanwhile",
          ),
        ),
      ),
      h("div", { class: "row" }, this.go),
    );
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      void this.ask();
    });
    this.pick.addEventListener("change", () => void this.open());
    this.text.addEventListener("input", () => this.clear());
    this.root = card(
      "Plan of a file",
      {
        hint: "What `bin/sderl ops apply` would change, as `bin/sderl ops plan` says it. Nothing is done.",
        class: "ops-card",
        testid: "ops-plan",
      },
      form,
      this.problem,
      this.result,
    );
    this.draw();
  }

  /** A viewer may not ask. */
  draw(): void {
    this.root.hidden = this.ctx.store.session?.role === "viewer";
  }

  destroy(): void {
    this.asked += 1;
  }

  private async open(): Promise<void> {
    const [file] = this.pick.files ?? [];
    if (file === undefined) return;
    this.clear();
    if (file.size > MOST_BYTES) return this.tooLarge(file.size);
    this.text.value = await file.text();
    this.go.focus();
  }

  private clear(): void {
    this.asked += 1;
    this.problem.hidden = true;
    this.result.hidden = true;
    this.go.disabled = false;
  }

  private async ask(): Promise<void> {
    this.clear();
    const text = this.text.value;
    const { length } = new TextEncoder().encode(text);
    if (text.trim() === "") return this.fail("There is no file: paste one, or open one.");
    if (length > MOST_BYTES) return this.tooLarge(length);
    const { asked } = this;
    this.go.disabled = true;
    setText(this.said, "Asking the service of operations …");
    this.draws({ changes: [], steps: [], refused: [] });
    this.result.hidden = false;
    try {
      const plan = await postJson<Plan>("api/v1/operations/plan", {
        text,
        force: this.force.checked,
      });
      if (asked !== this.asked) return;
      setText(this.said, words(plan));
      this.draws(plan);
    } catch (error) {
      if (asked !== this.asked) return;
      this.result.hidden = true;
      this.fail(messageOf(error));
    }
    this.go.disabled = false;
  }

  private draws({ changes, steps, refused }: Plan): void {
    this.refused.draw(refused);
    this.changes.draw(changes);
    this.steps.draw(steps);
  }

  private tooLarge(bytes: number): void {
    this.fail(
      `The file has ${count(bytes)} bytes, and at most ${count(MOST_BYTES)} are taken here: bin/sderl ops plan FILE takes larger ones.`,
    );
  }

  private fail(message: string): void {
    setText(this.problem, sentence(message));
    this.problem.hidden = false;
  }
}

export function words({ changes, steps, refused }: Plan): string {
  if (refused.length > 0) return "It would be refused, unless with --force.";
  if (changes.length === 0 && steps.length === 0) return "It would change nothing.";
  if (steps.length === 0) return "There is nothing to do for it.";
  return `It would take ${count(steps.length)} ${steps.length === 1 ? "step" : "steps"}.`;
}
