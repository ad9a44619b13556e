// SPDX-License-Identifier: Apache-2.0
// One finding. Its numbers change at each check while it stays: the elements stay too, and with them focus.
import type { Ctx } from "../../ui/ctx";
import { children as fill, h, text as setText } from "../../lib/dom";
import { ago, dateTime, withUnit } from "../../lib/format";
import { groupLink, level, nodeLink } from "../../ui/parts";
import { FOR_GOOD, type State } from "../../model/triage";
import type { Finding } from "../../model/protocol";

const HOUR_MS = 3_600_000;

export class FindingCard {
  readonly root: HTMLDetailsElement;
  private readonly severity = h("span", {});
  private readonly since = h("span", { class: "num" });
  private readonly title = h("span", { class: "finding-text", role: "heading", "aria-level": 2 });
  private readonly where = h("p", { class: "finding-where" });
  private readonly evidence = h("dl", { class: "evidence" });
  private readonly remedy = h("p", { class: "remedy" });
  private readonly saves = h("p", { class: "saves" });
  private readonly actions = h("p", { class: "row finding-actions" });
  private said = "";
  private state: State | "" = "";

  constructor(
    private readonly ctx: Ctx,
    private finding: Finding,
    toggled: () => void,
  ) {
    this.root = h(
      "details",
      { "data-kind": finding.kind },
      h(
        "summary",
        { click: toggled },
        h(
          "span",
          { class: "finding-head" },
          this.severity,
          h("span", { class: "muted" }, finding.kind.replaceAll("_", " ")),
          h("span", { class: "finding-since muted" }, "began ", this.since),
        ),
        this.title,
      ),
      this.where,
      h(
        "div",
        { class: "finding-body" },
        h("div", {}, h("h3", {}, "Evidence"), this.evidence),
        h(
          "div",
          {},
          h("h3", {}, "What to do"),
          this.remedy,
          this.saves,
          h(
            "p",
            { class: "finding-links" },
            h(
              "button",
              { type: "button", class: "button", click: () => ctx.store.seek(finding.since) },
              "Go to when it began",
            ),
          ),
        ),
      ),
      this.actions,
    );
  }

  /** `now` is the time shown, Unix ms. */
  draw(finding: Finding, now: number, state: State): void {
    this.finding = finding;
    this.drawActions(state);
    setText(this.since, ago(finding.since, now));
    const { severity, text, evidence, remedy, saves, where } = finding;
    const said = JSON.stringify([severity, text, evidence, remedy, saves, where]);
    if (said === this.said) return;
    this.said = said;
    this.since.title = dateTime(finding.since);
    this.root.className = `card finding finding-${severity}`;
    fill(this.severity, level(severity));
    setText(this.title, text);
    fill(this.where, ...this.places(where));
    fill(
      this.evidence,
      ...(evidence ?? []).flatMap((one) => [
        h("dt", {}, one.label),
        h("dd", { class: "num" }, withUnit(one.value, one.unit)),
      ]),
    );
    setText(this.remedy, remedy);
    const saved = Object.entries(saves ?? {}).filter(([, n]) => n > 0);
    setText(
      this.saves,
      saved.length > 0 ? `Would save ${saved.map(savedText).join(" and ")}.` : "",
    );
  }

  /** What is said here stays in this browser. */
  private drawActions(state: State): void {
    if (state === this.state) return;
    this.state = state;
    const { triage } = this.ctx.store;
    const button = (text: string, hint: string, run: () => void) =>
      h(
        "button",
        { type: "button", class: "button", title: `${hint}, in this browser`, click: run },
        text,
      );
    const mute = (text: string, hint: string, until: () => number) =>
      button(text, hint, () => triage.mute(this.finding, until()));
    fill(
      this.actions,
      ...(state === "open"
        ? [
            button("Acknowledge", "Seen: not counted until it ends and comes back", () =>
              triage.acknowledge(this.finding),
            ),
            mute("Mute for an hour", "Not counted for an hour", () => Date.now() + HOUR_MS),
            mute("Mute", "Not counted any more", () => FOR_GOOD),
          ]
        : [button("Look at it again", "Counted again", () => triage.reopen(this.finding))]),
    );
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
    const isGroup = this.ctx.store.shown.topology?.groupNamed(name) !== undefined;
    return isGroup ? groupLink(this.ctx, name) : nodeLink(this.ctx, name);
  }
}

const SAVED: Record<string, string> = { msgs_s: "msg/s", bytes_s: "bytes/s" };

const savedText = ([what, n]: [string, number]): string =>
  what === "links" && n === 1 ? "1 link" : withUnit(n, SAVED[what] ?? what);
