// SPDX-License-Identifier: Apache-2.0
// The switch for tracing: the server says what it costs, and only then is it turned on.
import type { Ctx } from "../../ui/ctx";
import { dialog } from "../../ui/parts";
import { h, set, text as setText } from "../../lib/dom";
import { RequestError } from "../../store/requests";
import { messageOf } from "../../lib/format";

const READ_ONLY =
  "This dashboard is read-only, so tracing cannot be turned on here. It can when the dashboard is started with --write.";

const ATTEMPTS = 8;
const AGAIN_MS = 300;

export class TraceSwitch {
  readonly root: HTMLElement;
  private readonly button: HTMLButtonElement;
  private readonly why = h("span", { class: "visually-hidden", id: "trace-why" });
  private on = false;

  constructor(
    private readonly ctx: Ctx,
    private readonly node: string,
  ) {
    this.button = h(
      "button",
      {
        type: "button",
        class: "button",
        role: "switch",
        "data-testid": "trace",
        click: () => this.pressed(),
      },
      "Trace",
    );
    this.root = h("span", { class: "trace-switch" }, this.button, this.why);
    this.draw(false, null);
  }

  /** `unable` says why this node cannot be traced. */
  draw(on: boolean, unable: string | null): void {
    this.on = on;
    const writable = this.ctx.store.hello?.writable ?? false;
    const why = writable ? unable : READ_ONLY;
    setText(this.button, on ? "Tracing is on" : "Trace …");
    set(this.button, "aria-checked", String(on));
    // Not `disabled`: it can be reached by keyboard, and says why it does nothing.
    set(this.button, "aria-disabled", why === null ? null : "true");
    this.button.title = why ?? "Who sends to whom, and on which scheduler processes run";
    setText(this.why, why ?? "");
    set(this.button, "aria-describedby", why === null ? null : "trace-why");
  }

  private pressed(): void {
    if (this.button.getAttribute("aria-disabled") === "true") {
      this.ctx.toast(this.button.title, "info");
    } else if (this.on) {
      void this.turn(false, {});
    } else {
      void this.ask();
    }
  }

  private async ask(): Promise<void> {
    const sample = h("input", {
      class: "input num",
      type: "number",
      min: "0.001",
      max: "1",
      step: "any",
      required: true,
    });
    sample.value = "0.01";
    const most = h("input", {
      class: "input num",
      type: "number",
      min: "1",
      max: "100000",
      step: "1",
      required: true,
    });
    most.value = "1000";
    const cost = h("p", { class: "cost" }, "Asking what it costs …");
    const go = h(
      "button",
      { class: "button button-primary", type: "submit", disabled: true },
      "Turn tracing on",
    );
    const form = h(
      "form",
      {},
      h(
        "p",
        {},
        "Traces processes on this node in a trace session of its own, beside any other tracer. Messages that the limits leave out are counted.",
      ),
      h("label", { class: "field" }, "Share of processes traced (above 0, to 1)", sample),
      h("label", { class: "field" }, "Trace messages looked at, at most a second", most),
      cost,
      h(
        "div",
        { class: "dialog-actions" },
        h("button", { class: "button", type: "button", click: () => element.close() }, "Cancel"),
        go,
      ),
    );
    const element = dialog(`Trace ${this.node}?`, form);
    const wanted = () => ({ sample: Number(sample.value), max_per_s: Number(most.value) });
    let asked = 0;
    const askCost = async () => {
      asked += 1;
      const mine = asked;
      go.disabled = true;
      // A node works out one cost at a time: another one's, or that of the values before.
      for (let left = ATTEMPTS; mine === asked; left -= 1) {
        try {
          const answer = await this.ctx.store.request("trace", {
            node: this.node,
            on: true,
            ...wanted(),
          });
          if (mine !== asked) return;
          setText(cost, answer.cost ?? "The cost is unknown.");
          go.disabled = false;
          return;
        } catch (error) {
          if (mine !== asked) return;
          if (
            left === 0 ||
            !element.open ||
            !(error instanceof RequestError && error.code === "unavailable")
          ) {
            setText(cost, messageOf(error));
            return;
          }
          await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
        }
      }
    };
    for (const input of [sample, most]) input.addEventListener("change", () => void askCost());
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      element.close();
      void this.turn(true, wanted());
    });
    await askCost();
  }

  private async turn(on: boolean, options: { sample?: number; max_per_s?: number }): Promise<void> {
    try {
      await this.ctx.store.request("trace", { node: this.node, on, ...options, confirm: true });
      this.ctx.toast(on ? `Tracing ${this.node}` : `Tracing of ${this.node} is off`, "info");
    } catch (error) {
      this.ctx.toast(messageOf(error));
    }
  }
}
