// SPDX-License-Identifier: Apache-2.0
// What was found in the numbers: where, since when, on what evidence, and what to do.
import type { Ctx, MountedPage, Page } from "../app/ctx";
import { type Choice, choice, groupLink, level, nodeLink } from "../lib/parts";
import { shownTime } from "../lib/period";
import { CHECKS, counted, inOrder, type Shown, wanted } from "../findings/model";
import type { Finding } from "../store/protocol";
import "../styles/data.css";
import "../styles/findings.css";
import { children as fill, h, text as setText } from "../lib/dom";
import { ago, dateTime, withUnit } from "../lib/format";

export const page: Page = {
  title: "Findings",
  mount: (root, ctx): MountedPage => new FindingsPage(root, ctx),
};

class FindingsPage implements MountedPage {
  private readonly list = h("div", { class: "findings", "data-testid": "findings" });
  private readonly head = h("p", { class: "muted" });
  private readonly switch: Choice<Shown>;
  private shown: Shown;
  private drawn = new Map<string, { finding: Finding; element: HTMLElement; since: HTMLElement }>();
  private empty = "";

  constructor(
    private readonly root: HTMLElement,
    private readonly ctx: Ctx,
  ) {
    this.shown = (ctx.route.query["severity"] as Shown | undefined) ?? "all";
    this.switch = choice<Shown>(
      "Severity",
      [
        ["all", "All"],
        ["critical", "Critical"],
        ["warning", "Warning"],
        ["info", "Info"],
      ],
      this.shown,
      (value) => {
        this.shown = value;
        ctx.setQuery({ severity: value === "all" ? "" : value });
        this.draw();
      },
    );
    root.append(
      h(
        "div",
        { class: "page-head" },
        h("div", {}, h("h1", {}, "Findings"), this.head),
        h("div", { class: "card-tools" }, this.switch.root),
      ),
      this.list,
    );
    this.draw();
  }

  update(change: Parameters<NonNullable<MountedPage["update"]>>[0]): void {
    if (change.has("findings") || change.has("time") || change.has("route")) this.draw();
  }

  destroy(): void {
    this.root.replaceChildren();
  }

  private draw(): void {
    const { findings, topology } = this.ctx.store.shown;
    const now = shownTime(this.ctx);
    const kept = wanted(inOrder(findings), this.shown);
    setText(this.head, topology === null ? "Waiting for the server …" : counted(findings));
    if (kept.length === 0) {
      this.drawn.clear();
      const key = `${topology === null} ${this.shown} ${findings.length}`;
      if (key !== this.empty) {
        this.empty = key;
        fill(this.list, topology === null ? null : nothing(findings.length, this.shown));
      }
      return;
    }
    this.empty = "";
    const before = this.drawn;
    this.drawn = new Map();
    for (const finding of kept) {
      const old = before.get(finding.id);
      // The same object, or one that says the same: the element keeps its focus and selection.
      const same = old && JSON.stringify(old.finding) === JSON.stringify(finding) ? old : null;
      const since = same?.since ?? h("span", { class: "num" });
      const element = same?.element ?? this.element(finding, since);
      setText(since, ago(finding.since, now));
      since.title = dateTime(finding.since);
      this.drawn.set(finding.id, { finding, element, since });
    }
    const elements = [...this.drawn.values()].map((one) => one.element);
    if (
      elements.length !== this.list.children.length ||
      elements.some((one, i) => this.list.children[i] !== one)
    ) {
      fill(this.list, ...elements);
    }
  }

  private element(finding: Finding, since: HTMLElement): HTMLElement {
    const { where, evidence, saves } = finding;
    const places = [
      where.group ? groupLink(this.ctx, where.group) : null,
      where.node ? nodeLink(this.ctx, where.node) : null,
      where.from ? this.place(where.from) : null,
      where.from && where.to ? h("span", { class: "muted" }, "→") : null,
      where.to ? this.place(where.to) : null,
    ].filter((one) => one !== null);
    const saved = Object.entries(saves ?? {}).filter(([, n]) => n > 0);
    return h(
      "article",
      {
        class: `card finding finding-${finding.severity}`,
        "aria-label": finding.text,
        "data-kind": finding.kind,
      },
      h(
        "div",
        { class: "finding-head" },
        level(finding.severity),
        h("span", { class: "muted" }, finding.kind.replaceAll("_", " ")),
        h("span", { class: "finding-since muted" }, "since ", since),
      ),
      h("h2", {}, finding.text),
      places.length > 0 ? h("p", { class: "finding-where" }, ...places) : null,
      h(
        "div",
        { class: "finding-body" },
        (evidence ?? []).length > 0
          ? h(
              "div",
              {},
              h("h3", {}, "Evidence"),
              h(
                "dl",
                { class: "evidence" },
                ...evidence.flatMap((one) => [
                  h("dt", {}, one.label),
                  h("dd", { class: "num" }, withUnit(one.value, one.unit)),
                ]),
              ),
            )
          : null,
        h(
          "div",
          {},
          h("h3", {}, "What to do"),
          h("p", { class: "remedy" }, finding.remedy),
          saved.length > 0
            ? h(
                "p",
                { class: "saves" },
                `Would save ${saved.map(([what, n]) => (what === "links" && n === 1 ? "1 link" : withUnit(n, SAVED[what] ?? what))).join(" and ")}.`,
              )
            : null,
          h(
            "p",
            { class: "finding-links" },
            h(
              "button",
              { type: "button", class: "button", click: () => this.ctx.store.seek(finding.since) },
              "Go to when it began",
            ),
          ),
        ),
      ),
    );
  }

  /** An end of an edge: a group or a node, whichever the topology knows. */
  private place(name: string): HTMLElement {
    return this.ctx.store.shown.topology?.groupNamed(name)
      ? groupLink(this.ctx, name)
      : nodeLink(this.ctx, name);
  }
}

const SAVED: Record<string, string> = { links: "links", msgs_s: "messages/s", bytes_s: "bytes/s" };

function nothing(others: number, shown: Shown): HTMLElement {
  return h(
    "section",
    { class: "card all-well" },
    h("h2", {}, others > 0 ? `Nothing of severity “${shown}”` : "Nothing to say: all is as it should be"),
    h("p", { class: "muted" }, "Looked at every five seconds, over the last minutes of the history:"),
    h(
      "ul",
      {},
      ...CHECKS.map(([title, text]) =>
        h("li", {}, h("strong", {}, title), h("span", { class: "muted" }, ` ${text}`)),
      ),
    ),
  );
}
