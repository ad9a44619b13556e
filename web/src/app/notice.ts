// SPDX-License-Identifier: Apache-2.0
// What is shown in place of the page, or above it, without a connection.
import type { Ended } from "../store/socket";
import type { Store } from "../store/store";
import { h, prose } from "../lib/dom";

/** A strip above the page while the connection is away. */
export class Banner {
  readonly element = h(
    "div",
    { class: "banner", role: "alert", hidden: true },
    h(
      "span",
      {},
      "The connection to the server is lost. The page shows the last data received, and keeps trying to connect.",
    ),
    h("button", { class: "button", onclick: () => this.store.retry() }, "Try now"),
  );

  constructor(private readonly store: Store) {}

  update(): void {
    this.element.hidden =
      this.store.connection !== "reconnecting" || this.store.shown.topology === null;
  }
}

/** Asks for a token, where it is missing or wrong, or has ended. */
export function tokenForm(enter: (token: string) => void, ended: Ended | null): HTMLElement {
  const input = h("input", {
    class: "input",
    type: "password",
    name: "token",
    autocomplete: "off",
    spellcheck: "false",
    required: true,
    "aria-label": "Token",
    "data-testid": "token",
  });
  const form = h(
    "form",
    { class: "empty" },
    h("h2", {}, title(ended)),
    h("p", {}, ...prose(advice(ended))),
    h(
      "div",
      { class: "row" },
      input,
      h("button", { class: "button button-primary", type: "submit" }, "Connect"),
    ),
  );
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    if (input.value.trim() !== "") enter(input.value.trim());
  });
  return form;
}

function title(ended: Ended | null): string {
  switch (ended) {
    case "expired":
      return "The token has expired";
    case "revoked":
      return "The token was revoked";
    case "unreadable":
      return "The tokens cannot be read";
    case null:
      return "A token is needed";
  }
}

function advice(ended: Ended | null): string {
  switch (ended) {
    case "expired":
    case "revoked":
      return "Enter another one here. An admin makes it with `bin/sderl tokens add`.";
    case "unreadable":
      return "The dashboard cannot read its file of tokens; its log says why. The page goes on by itself when it can, or with the token that the dashboard was started with.";
    case null:
      return "Open the address that was printed when the dashboard was started (it ends in #token=…), or enter the token here.";
  }
}
