// SPDX-License-Identifier: Apache-2.0
// All that was done to the cluster: who, what, when, and what came of it. The newest first, older ones on demand.
import type { Ctx } from "../../ui/ctx";
import type { Done } from "../../model/protocol";
import { stateMark } from "../../ui/operation";
import { card } from "../../ui/parts";
import { type Table, table } from "../../lib/table";
import { h, text as setText } from "../../lib/dom";
import { type Found, withNewest, withOlder } from "./record-model";
import { isNarrow, when } from "./when";
import { getJson } from "../../store/http";
import { Polled } from "../../ui/polled";
import { messageOf, sentence } from "../../lib/format";

const PAGE = 100;
const EVERY_MS = 3_000;
/** So short a time that the service looks at all entries of it for one answer. */
const RECENT_MS = 30_000;

export class RecordCard {
  readonly root: HTMLElement;
  private readonly table: Table<Done>;
  private readonly kind = h(
    "select",
    { class: "select", "aria-label": "What is listed", "data-testid": "record-kind" },
    h("option", { value: "" }, "All that was done"),
    h("option", { value: "request" }, "What was asked for"),
    h("option", { value: "step" }, "Steps"),
    h("option", { value: "note" }, "What the service decided"),
  );
  private readonly more = h(
    "button",
    { type: "button", class: "button", hidden: true, click: () => void this.older() },
    "Load older",
  );
  private readonly problem = h("p", { class: "problem plan-problem", role: "alert", hidden: true });
  private polled: Polled<Found> | undefined;
  private known: Found | null = null;
  private asked = "";
  private shownAt = 0;

  constructor(private readonly ctx: Ctx) {
    this.table = table<Done>({
      caption: "Record",
      id: ({ number }) => String(number),
      order: { key: "at", direction: "descending" },
      maxHeight: "24rem",
      roomy: true,
      columns: [
        {
          key: "at",
          label: "When",
          value: ({ number }) => number,
          show: ({ at }) => h("span", { class: "num" }, when(at)),
          width: "11rem",
          narrow: "5.4rem",
        },
        { key: "who", label: "Who", value: ({ who }) => who, width: "9rem", wide: true },
        {
          key: "what",
          label: "What",
          value: ({ what }) => what,
          show: ({ what, why }) => {
            // There is no room for a column of reasons on a narrow screen.
            const said = isNarrow() && why !== null ? `${what}: ${why}` : what;
            return h("span", { class: "lines", title: said }, said);
          },
        },
        {
          key: "result",
          label: "Result",
          value: ({ result }) => result,
          show: ({ result, why }) => mark(result, why),
          width: "8rem",
          narrow: "6.6rem",
        },
        {
          key: "why",
          label: "Why",
          value: ({ why }) => why ?? "",
          show: ({ why }) => h("span", { class: "lines", title: why ?? "" }, why ?? ""),
          wide: true,
        },
      ],
    });
    this.table.empty("Asking …");
    this.kind.addEventListener("change", () => {
      this.known = null;
      this.more.hidden = true;
      this.table.empty("Asking …");
      this.table.rows([]);
      this.polled?.refresh();
    });
    this.root = card(
      "Record",
      {
        hint: "Who did what with the cluster, and what came of it, as `bin/sderl ops history --all` tells it.",
        tools: [this.kind],
        testid: "ops-record",
      },
      this.problem,
      this.table.root,
      h("div", { class: "row" }, this.more),
    );
  }

  /** Nobody is asked while no service answers. */
  watch(on: boolean): void {
    if (on)
      this.polled ??= new Polled<Found>(this.ctx, {
        ask: () => this.ask(),
        show: (found) => this.show(found),
        failed: (message) => this.fail(message),
        everyMs: () => EVERY_MS,
      });
    else this.destroy();
  }

  refresh(): void {
    this.polled?.refresh();
  }

  destroy(): void {
    this.polled?.destroy();
    this.polled = undefined;
  }

  private ask(cursor?: string): Promise<Found> {
    const fields = new URLSearchParams({ limit: String(PAGE) });
    if (this.kind.value !== "") fields.set("kind", this.kind.value);
    if (cursor !== undefined) fields.set("cursor", cursor);
    return getJson<Found>(`api/v1/operations/record?${fields}`);
  }

  /** Older ones that were loaded stay behind the new ones. */
  private show(found: Found): void {
    const [kind, now] = [this.kind.value, performance.now()];
    const known = kind === this.asked ? this.known : null;
    const merged = withNewest(known, found, PAGE, now - this.shownAt < RECENT_MS);
    this.asked = kind;
    this.shownAt = now;
    this.draw(merged);
  }

  private async older(): Promise<void> {
    const { asked } = this;
    const from = this.known?.next ?? null;
    if (from === null) return;
    this.more.disabled = true;
    try {
      const found = await this.ask(from);
      // Meanwhile others may be shown, of which these are not the next ones.
      if (asked !== this.kind.value || this.known?.next !== from) return;
      this.draw(withOlder(this.known, found));
    } catch (error) {
      this.fail(messageOf(error));
    } finally {
      this.more.disabled = false;
    }
  }

  private draw(known: Found): void {
    this.known = known;
    this.problem.hidden = true;
    this.more.hidden = known.next === null;
    this.table.empty(
      known.next === null
        ? "Nothing of it was done yet."
        : "There is nothing of it among the newest entries: load older ones.",
    );
    this.table.rows(known.entries);
  }

  private fail(message: string): void {
    setText(this.problem, sentence(message));
    this.problem.hidden = false;
  }
}

function mark(result: string, why: string | null): HTMLElement | string {
  switch (result) {
    case "done":
      return stateMark("up", result);
    case "failed":
      return h("span", { title: why ?? "" }, stateMark("failed", result));
    default:
      return result;
  }
}
