// SPDX-License-Identifier: Apache-2.0
// What was found in the numbers: where, since when, on what evidence, and what to do.
import type { Ctx, MountedPage, Page } from "../app/ctx";
import { CHECKS, counted, inOrder, kindsOf, opened, type Shown, wanted } from "../findings/model";
import { children as fill, h, set, text as setText } from "../lib/dom";
import { ago, dateTime, withUnit } from "../lib/format";
import { type Choice, choice, groupLink, level, nodeLink } from "../lib/parts";
import { shownTime } from "../lib/period";
import type { Finding } from "../store/protocol";
import "../styles/data.css";
import "../styles/findings.css";

export const page: Page = {
  title: "Findings",
  mount: (root, ctx): MountedPage => new FindingsPage(root, ctx),
};

interface Drawn {
  said: string;
  element: HTMLDetailsElement;
  since: HTMLElement;
}

class FindingsPage implements MountedPage {
  private readonly list = h("div", { class: "findings", "data-testid": "findings" });
  private readonly head = h("p", { class: "muted", role: "status" });
  private readonly kind = h("select", { class: "select", "aria-label": "Kind" });
  private readonly switch: Choice<Shown>;
  private drawn = new Map<string, Drawn>();
  /** What a person opened or closed; others are open as `opened` says. */
  private readonly toggled = new Map<string, boolean>();
  private empty = "";
  private kinds = "";

  constructor(
    private readonly root: HTMLElement,
    private readonly ctx: Ctx,
  ) {
    this.switch = choice<Shown>(
      "Severity",
      [
        ["all", "All"],
        ["critical", "Critical"],
        ["warning", "Warning"],
        ["info", "Info"],
      ],
      this.severity(),
      (value) => this.filter({ severity: value === "all" ? "" : value }),
    );
    this.kind.addEventListener("change", () => this.filter({ kind: this.kind.value }));
    root.append(
      h(
        "div",
        { class: "page-head" },
        h("div", {}, h("h1", {}, "Findings"), this.head),
        h("div", { class: "card-tools" }, this.kind, this.switch.root),
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

  private severity(): Shown {
    const asked = this.ctx.route.query["severity"];
    return asked === "critical" || asked === "warning" || asked === "info" ? asked : "all";
  }

  private filter(query: Record<string, string>): void {
    this.ctx.setQuery(query);
    this.draw();
  }

  private draw(): void {
    const { findings, topology } = this.ctx.store.shown;
    const severity = this.severity();
    const kind = this.ctx.route.query["kind"] ?? "";
    const kept = wanted(inOrder(findings), severity, kind);
    this.switch.choose(severity);
    this.drawKinds(findings, kind);
    setText(this.head, topology === null ? "Waiting for the server …" : counted(findings));
    if (kept.length === 0) return this.drawNothing(topology === null, findings.length);
    this.empty = "";
    const now = shownTime(this.ctx);
    const open = opened(kept);
    const before = this.drawn;
    this.drawn = new Map();
    for (const finding of kept) {
      const said = JSON.stringify([
        finding.severity,
        finding.text,
        finding.evidence,
        finding.remedy,
        finding.saves,
      ]);
      const old = before.get(finding.id);
      // One that says the same keeps its element, and with it focus and selection.
      const one = old?.said === said ? old : this.element(finding, said);
      setText(one.since, ago(finding.since, now));
      set(one.element, "open", this.toggled.get(finding.id) ?? open.has(finding.id));
      this.drawn.set(finding.id, one);
    }
    const elements = [...this.drawn.values()].map((one) => one.element);
    if (
      elements.length !== this.list.children.length ||
      elements.some((one, i) => this.list.children[i] !== one)
    ) {
      fill(this.list, ...elements);
    }
  }

  private drawKinds(findings: readonly Finding[], chosen: string): void {
    const kinds = kindsOf(findings, chosen);
    const key = JSON.stringify([kinds, chosen]);
    if (key === this.kinds) return;
    this.kinds = key;
    fill(
      this.kind,
      h("option", { value: "" }, "All kinds"),
      ...kinds.map(([kind, n]) => h("option", { value: kind }, `${kind.replaceAll("_", " ")} (${n})`)),
    );
    this.kind.value = chosen;
  }

  private drawNothing(waiting: boolean, others: number): void {
    this.drawn.clear();
    const key = `${waiting} ${others > 0}`;
    if (key === this.empty) return;
    this.empty = key;
    fill(this.list, waiting ? null : nothing(others > 0));
  }

  private element(finding: Finding, said: string): Drawn {
    const { where, evidence, saves } = finding;
    const since = h("span", { class: "num", title: dateTime(finding.since) });
    const saved = Object.entries(saves ?? {}).filter(([, n]) => n > 0);
    const summary = h(
      "summary",
      {},
      h(
        "span",
        { class: "finding-head" },
        level(finding.severity),
        h("span", { class: "muted" }, finding.kind.replaceAll("_", " ")),
        h("span", { class: "finding-since muted" }, "began ", since),
      ),
      h("span", { class: "finding-text", role: "heading", "aria-level": 2 }, finding.text),
    );
    const element = h(
      "details",
      { class: `card finding finding-${finding.severity}`, "data-kind": finding.kind },
      summary,
      h("p", { class: "finding-where" }, ...this.places(where)),
      h(
        "div",
        { class: "finding-body" },
        h("div", {}, h("h3", {}, "Evidence"), evidenceList(evidence ?? [])),
        h(
          "div",
          {},
          h("h3", {}, "What to do"),
          h("p", { class: "remedy" }, finding.remedy),
          saved.length > 0
            ? h("p", { class: "saves" }, `Would save ${saved.map(savedText).join(" and ")}.`)
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
    summary.addEventListener("click", () => this.toggled.set(finding.id, !element.open));
    return { said, element, since };
  }

  private places({ group, node, from, to }: Finding["where"]): (HTMLElement | null)[] {
    return [
      group ? groupLink(this.ctx, group) : null,
      node ? nodeLink(this.ctx, node) : null,
      from ? this.place(from) : null,
      from && to ? h("span", { class: "muted" }, "→") : null,
      to ? this.place(to) : null,
    ];
  }

  /** An end of an edge: a group or a node, whichever the topology knows. */
  private place(name: string): HTMLElement {
    return this.ctx.store.shown.topology?.groupNamed(name)
      ? groupLink(this.ctx, name)
      : nodeLink(this.ctx, name);
  }
}

const evidenceList = (evidence: Finding["evidence"]): HTMLElement =>
  h(
    "dl",
    { class: "evidence" },
    ...evidence.flatMap((one) => [
      h("dt", {}, one.label),
      h("dd", { class: "num" }, withUnit(one.value, one.unit)),
    ]),
  );

const SAVED: Record<string, string> = { msgs_s: "messages/s", bytes_s: "bytes/s" };

const savedText = ([what, n]: [string, number]): string =>
  what === "links" && n === 1 ? "1 link" : withUnit(n, SAVED[what] ?? what);

function nothing(others: boolean): HTMLElement {
  return h(
    "section",
    { class: "card all-well" },
    h("h2", {}, others ? "None passes these filters" : "Nothing to say: all is as it should be"),
    h("p", { class: "muted" }, "Looked at every five seconds, by the means of the last 15 seconds:"),
    h(
      "ul",
      {},
      ...CHECKS.map(([title, text]) =>
        h("li", {}, h("strong", {}, title), h("span", { class: "muted" }, ` ${text}`)),
      ),
    ),
  );
}
