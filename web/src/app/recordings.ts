// SPDX-License-Identifier: Apache-2.0
// Which recordings there are; one is opened in place of the live cluster.
import { bytes, dateTime } from "../lib/format";
import { h } from "../lib/dom";
import type { Recording } from "../model/protocol";
import { emptyState } from "../ui/parts";
import type { Ctx } from "../ui/ctx";

export class Recordings {
  readonly element = h("dialog", { class: "dialog", "aria-label": "Recordings" });
  private readonly body = h("div", { class: "dialog-body" });

  constructor(private readonly ctx: Ctx) {
    this.element.append(
      h(
        "header",
        { class: "dialog-head" },
        h("h2", {}, "Recordings"),
        h(
          "button",
          { class: "icon-button", "aria-label": "Close", onclick: () => this.element.close() },
          "×",
        ),
      ),
      this.body,
    );
    this.element.addEventListener("click", (event) => {
      if (event.target === this.element) this.element.close();
    });
  }

  async show(): Promise<void> {
    this.body.replaceChildren(h("p", { class: "muted" }, "Asking…"));
    this.element.showModal();
    try {
      const result = await this.ctx.store.request("recordings", {});
      this.list(Array.isArray(result) ? result : (result?.recordings ?? []));
    } catch (error) {
      this.body.replaceChildren(
        emptyState("Recordings could not be listed", (error as Error).message),
      );
    }
  }

  private list(recordings: readonly Recording[]): void {
    const { store } = this.ctx;
    const back = h(
      "button",
      { class: "button", onclick: () => void this.run(() => store.closeRecording()) },
      "Back to live",
    );
    const record = store.hello?.writable
      ? h(
          "div",
          { class: "row" },
          h(
            "button",
            {
              class: "button",
              onclick: () => void this.run(() => store.request("record", { on: true })),
            },
            "Start recording",
          ),
          h(
            "button",
            {
              class: "button",
              onclick: () => void this.run(() => store.request("record", { on: false })),
            },
            "Stop recording",
          ),
        )
      : null;
    if (recordings.length === 0) {
      this.body.replaceChildren(
        emptyState(
          "No recordings",
          "A recording keeps all that was measured in files of bounded size. Recording is switched on in the monitor's configuration (record), or here when the dashboard may write.",
          ...(record === null ? [] : [record]),
        ),
      );
      return;
    }
    const row = (recording: Recording) =>
      h(
        "tr",
        {},
        h("td", { class: "mono" }, recording.name),
        h("td", { class: "num" }, dateTime(recording.modified)),
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
    this.body.replaceChildren(
      h(
        "div",
        { class: "table-scroll" },
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
          h("tbody", {}, ...recordings.map(row)),
        ),
      ),
      h("div", { class: "row dialog-actions" }, record, store.recording === null ? null : back),
    );
  }

  private async run(action: () => Promise<unknown>): Promise<void> {
    try {
      await action();
      this.element.close();
    } catch (error) {
      this.ctx.toast((error as Error).message);
    }
  }
}
