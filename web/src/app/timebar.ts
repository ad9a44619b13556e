// SPDX-License-Identifier: Apache-2.0
// Time travel: pause, live, scrub; the time chosen goes for every page.
import type { Change } from "../store/signals";
import { h, text as setText } from "../lib/dom";
import { clock } from "../lib/format";
import type { Ctx } from "./ctx";
import { icon } from "./icons";
import type { Route } from "./router";

export class TimeBar {
  readonly element: HTMLElement;
  private readonly pause: HTMLButtonElement;
  private readonly live: HTMLButtonElement;
  private readonly scrub: HTMLInputElement;
  private readonly label = h("output", { class: "time-label" });

  constructor(private readonly ctx: Ctx) {
    this.pause = h("button", { class: "icon-button", "data-testid": "pause", onclick: () => this.toggle() }, icon("pause"));
    this.live = h("button", { class: "button live-button", "data-testid": "live", onclick: () => ctx.store.goLive() }, "Live");
    this.scrub = h("input", { type: "range", class: "scrub", "data-testid": "scrub", "aria-label": "Time", min: "0", max: "1", step: "1", oninput: () => ctx.store.seek(Number(this.scrub.value)) });
    this.element = h("footer", { class: "timebar" }, this.pause, this.live, this.scrub, this.label);
    ctx.keys.add(
      { key: " ", text: "Pause, or go on", section: "Time", run: () => this.toggle() },
      { key: "l", text: "Live", section: "Time", run: () => ctx.store.goLive() },
      { key: ",", text: "One frame back", section: "Time", run: () => ctx.store.step(-1) },
      { key: ".", text: "One frame on", section: "Time", run: () => ctx.store.step(1) },
    );
  }

  routed(_before: Route): void {}

  update(change: Change): void {
    const { time, range } = this.ctx.store;
    if (change.has("range") && range) {
      this.scrub.min = String(range[0]);
      this.scrub.max = String(range[1]);
    }
    if (time.t !== null) this.scrub.value = String(time.t);
    setText(this.label, clock(time.t));
    this.pause.setAttribute("aria-label", time.mode === "live" ? "Pause" : "Go on");
    this.pause.replaceChildren(icon(time.mode === "paused" ? "play" : "pause"));
    this.live.setAttribute("aria-pressed", String(time.mode === "live"));
  }

  private toggle(): void {
    const { store } = this.ctx;
    if (store.time.mode === "paused") store.play();
    else store.pause();
  }
}
