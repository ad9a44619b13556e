// SPDX-License-Identifier: Apache-2.0
// Who did what, where, with which result: the newest first, searched and filtered.
import type { Ctx, MountedPage, Page } from "../../ui/ctx";
import type { Change } from "../../store/signals";
import { children as fill, h, text as setText } from "../../lib/dom";
import { clock, count, dateTime, messageOf } from "../../lib/format";
import { card, facts, nodeLink, searchKey, closeButton, searchField } from "../../ui/parts";
import { getJson } from "../../store/http";
import { names, options } from "../../ui/options";
import { Polled } from "../../ui/polled";
import { type Table, table } from "../../lib/table";
import { address, type Entry, type Found, lacks, RESULTS, where, who, words } from "./model";
import "../../styles/data.css";
import "./audit.css";

const PAGE = 200;
const EVERY_MS = 3000;
const REST_MS = 250;
const KEYS = ["text", "who", "node", "result", "request"] as const;

export const page: Page = {
  mount: (root, ctx) => new AuditPage(root, ctx),
};

class AuditPage implements MountedPage {
  private readonly table: Table<Entry>;
  private readonly text = searchField("Search", "audit-text", true);
  private readonly who = searchField("By whom", "audit-who", false);
  private readonly result = h(
    "select",
    { class: "select", "aria-label": "Result" },
    h("option", { value: "" }, "All results"),
    ...RESULTS.map((one) => h("option", { value: one }, one)),
  );
  private readonly node = h("select", { class: "select", "aria-label": "Node" });
  private readonly one = h("p", { class: "row", hidden: true });
  private readonly chosen = h("div", { class: "chosen", hidden: true });
  private readonly problem = h("p", { class: "problem", role: "alert", hidden: true });
  private readonly about = h("p", { class: "muted", role: "status" });
  private readonly more = h(
    "button",
    { type: "button", class: "button", click: () => void this.older() },
    "Load older",
  );
  private readonly polled: Polled<Found>;
  private readonly release: () => void;
  private entries: Entry[] = [];
  private question = "";
  private drawn = "";
  private typing: ReturnType<typeof setTimeout> | undefined;

  constructor(
    private readonly root: HTMLElement,
    private readonly ctx: Ctx,
  ) {
    this.table = table<Entry>({
      caption: "Audit log",
      roomy: true,
      id: ({ seq }) => String(seq),
      order: { key: "at", direction: "descending" },
      maxHeight: "max(20rem, calc(100dvh - 19rem))",
      onChoose: (entry) => this.choose(entry),
      columns: [
        {
          key: "at",
          label: "Time",
          value: ({ seq }) => seq,
          show: ({ at }) => {
            const t = Date.parse(at);
            return h("span", { class: "num", title: dateTime(t) }, clock(t));
          },
          width: "5.5rem",
        },
        {
          key: "result",
          label: "Result",
          value: ({ result }) => result,
          show: ({ result }) =>
            h("span", { class: `audit-result audit-${result}`, title: result }, result),
          width: "5.5rem",
        },
        { key: "who", label: "Who", value: ({ who }) => who.name, width: "9rem", wide: true },
        {
          key: "what",
          label: "What",
          value: (entry) => words(entry),
          show: (entry) => h("span", { class: "lines", title: words(entry) }, words(entry)),
        },
        {
          key: "where",
          label: "Where",
          value: (entry) => where(entry),
          show: (entry) => h("span", { title: entry.where.join(", ") }, where(entry)),
          width: "13rem",
          wide: true,
        },
      ],
    });
    for (const [input, key] of [
      [this.text, "text"],
      [this.who, "who"],
    ] as const)
      input.addEventListener("input", () => {
        clearTimeout(this.typing);
        this.typing = setTimeout(() => this.change(key, input.value), REST_MS);
      });
    for (const [select, key] of [
      [this.result, "result"],
      [this.node, "node"],
    ] as const)
      select.addEventListener("change", () => this.change(key, select.value));
    root.append(
      card(
        "Audit log",
        {
          hint: "Who did what with the nodes, on this monitoring node. Choose an entry to read all of it.",
          tools: [this.text, this.who, this.result, this.node],
          testid: "audit",
        },
        this.problem,
        this.one,
        this.chosen,
        this.table.root,
        h("div", { class: "row list-more" }, this.more, this.about),
      ),
    );
    this.more.hidden = true;
    this.table.empty("Asking ...");
    this.drawTools();
    this.release = searchKey(ctx, root, "Search the audit log");
    this.polled = new Polled<Found>(ctx, {
      ask: () => this.ask(),
      show: (found) => this.show(found),
      failed: (message) => this.fail(message),
      everyMs: () => EVERY_MS,
    });
  }

  update(change: Change): void {
    if (change.has("topology") || change.has("route")) this.drawTools();
    if (change.has("hello") || change.has("route")) this.polled.refresh();
  }

  destroy(): void {
    clearTimeout(this.typing);
    this.polled.destroy();
    this.release();
    this.root.replaceChildren();
  }

  private filter(): Record<string, string> {
    const { query } = this.ctx.route;
    return Object.fromEntries(
      KEYS.map((key) => [key, query[key] ?? ""] as const).filter(([, value]) => value !== ""),
    );
  }

  private change(key: string, value: string): void {
    this.ctx.setQuery({ [key]: value });
    this.polled.refresh();
  }

  private ask(more: Record<string, string> = {}): Promise<Found> {
    return getJson<Found>(address({ ...this.filter(), limit: String(PAGE), ...more }));
  }

  /** Older ones that were loaded stay behind the new ones. */
  private show(found: Found): void {
    const question = JSON.stringify(this.filter());
    const last = found.entries.at(-1)?.seq ?? 0;
    const same = question === this.question;
    const kept = same ? this.entries.filter((one) => one.seq < last) : [];
    this.question = question;
    this.entries = [...found.entries, ...kept];
    if (!same || kept.length === 0) this.more.hidden = !found.more;
    this.draw(found);
  }

  private draw(found: Found): void {
    this.table.empty(
      this.question === "{}" ? "Nobody has done anything yet." : "No entry passes these filters.",
    );
    this.table.rows(this.entries);
    const lack = lacks(found);
    setText(this.problem, lack);
    this.problem.hidden = lack === "";
    setText(
      this.about,
      `${count(this.entries.length)} ${this.entries.length === 1 ? "entry" : "entries"}` +
        (found.oldest === null ? "." : `; those from number ${found.oldest} on are kept.`),
    );
  }

  private fail(message: string): void {
    setText(this.problem, message);
    this.problem.hidden = false;
  }

  private async older(): Promise<void> {
    const { question } = this;
    const before = this.entries.at(-1)?.seq;
    if (before === undefined) return;
    this.more.disabled = true;
    try {
      const found = await this.ask({ before: String(before) });
      if (question !== this.question) return;
      this.entries = [...this.entries, ...found.entries];
      this.more.hidden = !found.more;
      this.draw(found);
    } catch (error) {
      this.ctx.toast(messageOf(error));
    } finally {
      this.more.disabled = false;
    }
  }

  private choose(entry: Entry): void {
    const close = () => {
      this.chosen.hidden = true;
      this.table.mark(null);
    };
    fill(
      this.chosen,
      h(
        "div",
        { class: "row" },
        h("span", { class: `audit-result audit-${entry.result}` }, entry.result),
        h("strong", {}, entry.what),
        h("span", { class: "spring" }),
        closeButton(close),
      ),
      facts(
        (
          [
            ["when", dateTime(Date.parse(entry.at))],
            ["who", who(entry)],
            [
              "where",
              h("span", { class: "row" }, ...entry.where.map((one) => nodeLink(this.ctx, one))),
            ],
            ["detail", entry.detail],
            ["took", entry.ms === null ? "" : `${count(entry.ms)} ms`],
            [
              "request",
              entry.request === ""
                ? ""
                : h(
                    "a",
                    {
                      href: this.ctx.href("audit", null, { request: entry.request }),
                      class: "place",
                    },
                    entry.request,
                  ),
            ],
            ["number", String(entry.seq)],
          ] as const
        ).filter(([, value]) => value !== ""),
      ),
      h("pre", { class: "chosen-text", tabindex: "0" }, JSON.stringify(entry.args, null, 2)),
    );
    this.chosen.hidden = false;
    this.table.mark(String(entry.seq));
  }

  private drawTools(): void {
    const filter = this.filter();
    const nodes = names(this.ctx.store.shown.topology?.nodes, filter["node"] ?? "");
    const key = JSON.stringify([nodes, filter]);
    if (key === this.drawn) return;
    this.drawn = key;
    if (document.activeElement !== this.text) this.text.value = filter["text"] ?? "";
    if (document.activeElement !== this.who) this.who.value = filter["who"] ?? "";
    this.result.value = filter["result"] ?? "";
    options(this.node, "All nodes", nodes, filter["node"] ?? "");
    const request = filter["request"];
    this.one.hidden = request === undefined;
    if (request !== undefined)
      fill(
        this.one,
        h("span", {}, `Of request ${request}.`),
        h(
          "button",
          { type: "button", class: "button", click: () => this.change("request", "") },
          "Show all",
        ),
      );
  }
}
