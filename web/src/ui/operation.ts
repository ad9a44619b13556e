// SPDX-License-Identifier: Apache-2.0
// What both pages of operations have in common: they ask the service, and say why there is no answer.
import type { Ctx } from "./ctx";
import type { Operation } from "../model/protocol";
import { look } from "../model/operation";
import { children as fill, h, prose } from "../lib/dom";
import { Polled } from "./polled";
import { sentence } from "../lib/format";

const EVERY_MS = 2_000;
/** Nothing else shows the steps, so none is to be missed while it works. */
const WORKING_MS = 1_000;

export interface Asked {
  /** Says why there is nothing to see. */
  readonly note: HTMLElement;
  refresh(): void;
  destroy(): void;
}

/** Asks again and again; `show` gets null while there is no answer that may be shown. */
export function asked(ctx: Ctx, show: (operation: Operation | null) => void): Asked {
  const note = h("p", { class: "note", role: "status" }, "Asking the service of operations …");
  let working = false;
  let said = "";
  const say = (message: string) => {
    note.hidden = message === "";
    if (message === said) return;
    said = message;
    fill(note, ...prose(message));
  };
  const polled = new Polled<Operation>(ctx, {
    ask: () => ctx.store.request("operations", {}),
    show: (operation) => {
      working = operation.status.state === "working";
      say("");
      show(operation);
    },
    failed: (message) => {
      working = false;
      say(sentence(message));
      show(null);
    },
    everyMs: () => (working ? WORKING_MS : EVERY_MS),
  });
  return { note, refresh: () => polled.refresh(), destroy: () => polled.destroy() };
}

/** A state with its own sign, so that colour is not needed. */
export function stateMark(state: string, text = state.replaceAll("_", " ")): HTMLElement {
  const sign = { well: "✓", aside: "–", amiss: "!" }[look(state)];
  return h(
    "span",
    { class: `ops-state ops-${look(state)}` },
    h("span", { class: "ops-sign", "aria-hidden": "true" }, sign),
    text,
  );
}
