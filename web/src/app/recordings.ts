// SPDX-License-Identifier: Apache-2.0
// The dialog of recordings: lists them, says whether one is being written, and opens one in place of
// the live cluster.
import { bytes, dateTime, messageOf } from "../lib/format";
import { h } from "../lib/dom";
import type { Recording } from "../model/protocol";
import { type Told, written } from "../model/recording";
import type { Ctx } from "../ui/ctx";
import { emptyState, makeDialog } from "../ui/parts";
import { Polled } from "../ui/polled";

const OPEN_EVERY_MS = 2000;
const CLOSED_EVERY_MS = 30_000;

export class Recordings {
  private readonly body = h("div", { class: "dialog-body" });
  readonly element = makeDialog("Recordings", this.body);
  private readonly list: Polled<Recording[]>;
  private recordings: readonly Recording[] = [];
  private told: Told | null = null;
  private drawn = "";

  /** `changed` gets the name of the recording that is being written, or null. */
  constructor(
    private readonly ctx: Ctx,
    private readonly changed: (running: string | null) => void,
  ) {
    this.list = new Polled(ctx, {
      everyMs: () => (this.element.open ? OPEN_EVERY_MS : CLOSED_EVERY_MS),
      ask: async () => {
        const result = await ctx.store.request("recordings", {});
        return Array.isArray(result) ? result : (result?.recordings ?? []);
      },
      show: (recordings) => {
        this.recordings = recordings;
        this.draw();
      },
      failed: (message) => {
        this.drawn = "";
        this.body.replaceChildren(emptyState("Recordings could not be listed", message));
      },
    });
  }

  /** The server is there again, or another one. */
  refresh(): void {
    this.list.refresh();
  }

  show(): void {
    if (this.ctx.store.connection !== "connected") {
      this.drawn = "";
      this.body.replaceChildren(
        emptyState("Recordings could not be listed", "There is no connection to the server."),
      );
    } else if (this.drawn === "") this.body.replaceChildren(h("p", { class: "muted" }, "Asking…"));
    this.element.showModal();
    this.list.refresh();
  }

  private running(): string | null {
    const { hello, live, recording } = this.ctx.store;
    // The server's clock, where it tells it.
    const now = (recording === null ? live.frame?.t : null) ?? Date.now();
    return written(this.recordings, now, hello?.interval_ms ?? 1000, this.told);
  }

  private draw(): void {
    const { store } = this.ctx;
    const running = this.running();
    this.changed(running);
    const writable = store.hello?.writable === true;
    const drawn = JSON.stringify([this.recordings, running, writable, store.recording]);
    if (drawn === this.drawn) return;
    this.drawn = drawn;
    this.body.replaceChildren(
      this.state(running, writable),
      this.recordings.length === 0
        ? emptyState(
            "No recordings",
            "A recording keeps all that was measured, in files of bounded size. Recording is switched on in the monitor's configuration (record), or here when the dashboard is started with --write.",
          )
        : this.table(running),
    );
  }

  private state(running: string | null, writable: boolean): HTMLElement {
    const { store } = this.ctx;
    const button = (text: string, action: () => Promise<unknown>) =>
      h("button", { class: "button", onclick: () => void this.run(action) }, text);
    return h(
      "div",
      { class: "row recording-state" },
      running === null
        ? h("p", { role: "status" }, "Nothing is being recorded.")
        : h(
            "p",
            { role: "status" },
            h("span", { class: "recording-dot", "aria-hidden": "true" }),
            "Recording runs: ",
            h("code", {}, running),
          ),
      writable && running === null
        ? button("Start recording", () => this.record(true))
        : writable
          ? button("Stop recording", () => this.record(false))
          : null,
      store.recording === null ? null : button("Back to live", () => store.closeRecording()),
    );
  }

  private table(running: string | null): HTMLElement {
    const { store } = this.ctx;
    const row = (recording: Recording) =>
      h(
        "tr",
        {},
        h("td", { class: "mono" }, recording.name),
        h(
          "td",
          { class: "num" },
          recording.name === running ? "being written" : dateTime(recording.modified),
        ),
        h("td", { class: "num" }, bytes(recording.bytes)),
        h(
          "td",
          {},
          h(
            "button",
            {
              class: "button",
              disabled: store.recording === recording.name,
              onclick: () => void this.run(() => store.open(recording.name)),
            },
            "Open",
          ),
        ),
      );
    return h(
      "div",
      { class: "table-scroll recording-list" },
      h(
        "table",
        { class: "table" },
        h(
          "thead",
          {},
          h(
            "tr",
            {},
            h("th", {}, "Recording"),
            h("th", { class: "num" }, "Last written"),
            h("th", { class: "num" }, "Size"),
            h("th", {}),
          ),
        ),
        h("tbody", {}, ...this.recordings.map(row)),
      ),
    );
  }

  private async record(on: boolean): Promise<void> {
    const { store } = this.ctx;
    const answer = (await store.request("record", { on })) as { recording?: string | null } | null;
    this.told = { name: answer?.recording ?? null, at: store.live.frame?.t ?? Date.now() };
    this.draw();
    this.list.refresh();
  }

  private async run(action: () => Promise<unknown>): Promise<void> {
    try {
      await action();
      this.element.close();
    } catch (error) {
      this.ctx.toast(messageOf(error));
    }
  }
}
