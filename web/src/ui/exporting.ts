// SPDX-License-Identifier: Apache-2.0
// The history as a file: a button that fetches it with the token, which no plain link could carry.
import type { Ctx } from "./ctx";
import { icon } from "./icons";
import { asked } from "../store/http";
import { h } from "../lib/dom";
import { span } from "./period";
import { messageOf } from "../lib/format";

export interface Wanted {
  what: "nodes" | "links" | "groups" | "kinds" | "traffic" | "events" | "findings";
  by?: string;
  /** Unix ms; of the period shown where left out. */
  from?: number;
  to?: number;
}

/** The address below the page's own, and the name of the file. */
export function exportOf(wanted: Required<Pick<Wanted, "from" | "to">> & Wanted): {
  path: string;
  file: string;
} {
  const { what, by, from, to } = wanted;
  const fields = new URLSearchParams({
    format: "csv",
    what,
    from: String(from),
    to: String(to),
    ...(by ? { by } : {}),
  });
  const stamp = new Date(to).toISOString().slice(0, 19).replaceAll(":", "-");
  return {
    path: `api/v1/export?${fields}`,
    file: `sderl-${by ? `${what}-${by}` : what}-${stamp}.csv`,
  };
}

/** A button that saves what is wanted when it is pressed. Recordings have no export of their own. */
export function exportButton(ctx: Ctx, hint: string, wanted: () => Wanted): HTMLElement {
  const button = h(
    "button",
    { type: "button", class: "button", title: hint, "aria-label": hint, click: () => void save() },
    icon("download"),
    "CSV",
  );
  async function save(): Promise<void> {
    if (ctx.store.recording !== null) {
      ctx.toast("A recording cannot be exported here: go back to the live cluster first.", "info");
      return;
    }
    button.disabled = true;
    try {
      const { path, file } = exportOf({ ...span(ctx), ...wanted() });
      keep(await (await asked(path)).blob(), file);
    } catch (error) {
      ctx.toast(messageOf(error));
    } finally {
      button.disabled = false;
    }
  }
  return button;
}

function keep(content: Blob, file: string): void {
  const url = URL.createObjectURL(content);
  const link = h("a", { href: url, download: file });
  link.click();
  // The browser has taken it over by then.
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
