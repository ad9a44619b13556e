// SPDX-License-Identifier: Apache-2.0
// What was found in the numbers: where, since when, on what evidence, and what to do.
import type { Ctx, MountedPage, Page } from "../../ui/ctx";
import type { Change } from "../../store/signals";
import { inOrder } from "../../model/findings";
import type { State } from "../../model/triage";
import { CHECKS, counted, kindsOf, opened, type Shown, STATES, unchecked, wanted } from "./model";
import { FindingCard } from "./finding-card";
import { arrange, children as fill, h, set, text as setText } from "../../lib/dom";
import { exportButton } from "../../ui/exporting";
import { type Choice, choice } from "../../ui/parts";
import { shownTime } from "../../ui/period";
import type { Finding } from "../../model/protocol";
import { options } from "../../ui/options";
import "../../styles/data.css";
import "../../styles/findings.css";

export const page: Page = {
  mount: (root, ctx) => new FindingsPage(root, ctx),
};

class FindingsPage implements MountedPage {
  private readonly list = h("div", { class: "findings", "data-testid": "findings" });
  private readonly head = h("p", { class: "muted", role: "status" });
  private readonly kind = h("select", { class: "select", "aria-label": "Kind" });
  private readonly switch: Choice<Shown>;
  private readonly states: Choice<State>;
  private drawn = new Map<string, FindingCard>();
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
    this.states = choice<State>("State", STATES, this.state(), (value) =>
      this.filter({ state: value === "open" ? "" : value }),
    );
    this.kind.addEventListener("change", () => this.filter({ kind: this.kind.value }));
    root.append(
      h(
        "div",
        { class: "page-head" },
        h("div", {}, h("h1", {}, "Findings"), this.head),
        h(
          "div",
          { class: "card-tools" },
          this.states.root,
          this.kind,
          this.switch.root,
          exportButton(ctx, "These findings as a CSV file", () => ({ what: "findings" })),
        ),
      ),
      this.list,
    );
    this.draw();
  }

  update(change: Change): void {
    if (["findings", "time", "route", "topology"].some((kind) => change.has(kind as "time")))
      this.draw();
  }

  destroy(): void {
    this.root.replaceChildren();
  }

  private severity(): Shown {
    const asked = this.ctx.route.query["severity"];
    return asked === "critical" || asked === "warning" || asked === "info" ? asked : "all";
  }

  private state(): State {
    const asked = this.ctx.route.query["state"];
    return asked === "acknowledged" || asked === "muted" ? asked : "open";
  }

  private filter(query: Record<string, string>): void {
    this.ctx.setQuery(query);
    this.draw();
  }

  private draw(): void {
    const { shown, triage } = this.ctx.store;
    const { topology } = shown;
    const state = this.state();
    const findings = shown.findings.filter((finding) => triage.stateOf(finding) === state);
    const others = shown.findings.length - findings.length;
    this.states.choose(state);
    const severity = this.severity();
    const kind = this.ctx.route.query["kind"] ?? "";
    const kept = wanted(inOrder(findings), severity, kind);
    this.switch.choose(severity);
    this.drawKinds(findings, kind);
    setText(this.head, topology === null ? "Waiting for the server …" : counted(findings, others));
    if (kept.length === 0) return this.drawNothing(topology === null, shown.findings.length);
    this.empty = "";
    const now = shownTime(this.ctx);
    const open = opened(kept);
    const before = this.drawn;
    this.drawn = new Map();
    for (const finding of kept) {
      const one =
        before.get(finding.id) ??
        new FindingCard(this.ctx, finding, () => this.toggled.set(finding.id, !one.root.open));
      one.draw(finding, now, state);
      set(one.root, "open", this.toggled.get(finding.id) ?? open.has(finding.id));
      this.drawn.set(finding.id, one);
    }
    arrange(
      this.list,
      [...this.drawn.values()].map((one) => one.root),
    );
  }

  private drawKinds(findings: readonly Finding[], chosen: string): void {
    const kinds = kindsOf(findings, chosen);
    const key = JSON.stringify([kinds, chosen]);
    if (key === this.kinds) return;
    this.kinds = key;
    const counts = new Map(kinds);
    options(
      this.kind,
      "All kinds",
      [...counts.keys()],
      chosen,
      (kind) => `${kind.replaceAll("_", " ")} (${counts.get(kind)})`,
    );
  }

  private drawNothing(waiting: boolean, others: number): void {
    this.drawn.clear();
    const lacking = unchecked(this.ctx.store.shown.topology?.nodes ?? []);
    const key = `${waiting} ${others > 0} ${lacking}`;
    if (key === this.empty) return;
    this.empty = key;
    fill(this.list, waiting ? null : nothing(others > 0, lacking));
  }
}

function nothing(others: boolean, lacking: string | null): HTMLElement {
  const all = { class: "card all-well" };
  // Of what was found elsewhere no tick says that it was not.
  if (others)
    return h(
      "section",
      all,
      h("h2", {}, "None of the findings is here"),
      h("p", { class: "muted" }, "All findings of this time have another state, kind or severity."),
    );
  return h(
    "section",
    all,
    h("h2", {}, "Nothing found"),
    h(
      "p",
      { class: "muted" },
      "These are checked every five seconds, on means of the last 15 seconds:",
    ),
    h(
      "ul",
      {},
      ...CHECKS.map(([title, text]) =>
        h("li", {}, h("strong", {}, title), h("span", { class: "muted" }, ` ${text}`)),
      ),
    ),
    lacking === null ? null : h("p", { class: "note" }, lacking),
  );
}
