// SPDX-License-Identifier: Apache-2.0
// The problems of a node: findings about it, and what its own s_groups report.
import type { Ctx } from "../../ui/ctx";
import { inOrder } from "../../model/findings";
import { children as fill, h } from "../../lib/dom";
import { card, level } from "../../ui/parts";
import type { Finding } from "../../model/protocol";

/** Shown here; the page of findings has all. */
const MOST = 5;

/** Findings that name a node, as a place or as an end of a link. */
export const about = (findings: readonly Finding[], node: string): Finding[] =>
  inOrder(findings.filter(({ where }) => [where.node, where.from, where.to].includes(node)));

export class Concerns {
  readonly root: HTMLElement;
  private readonly list = h("ul", { class: "problems" });
  private said = "";

  constructor(
    private readonly ctx: Ctx,
    private readonly node: string,
  ) {
    this.root = card("Problems", { class: "problem-card" }, this.list);
    this.root.hidden = true;
  }

  /** `problems` are those that `s_group:info/0` tells on the node. */
  draw(findings: readonly Finding[], problems: readonly string[]): void {
    const found = about(findings, this.node);
    const said = JSON.stringify([found.map((one) => [one.id, one.severity, one.text]), problems]);
    if (said === this.said) return;
    this.said = said;
    this.root.hidden = found.length === 0 && problems.length === 0;
    const shown = found.slice(0, MOST);
    const more = found.length - shown.length;
    fill(
      this.list,
      ...problems.map((one) => h("li", {}, level("warning"), one)),
      ...shown.map((one) => h("li", {}, level(one.severity), this.link(one.text, one.kind))),
      more > 0 ? h("li", {}, this.link(`${more} more`, "")) : null,
    );
  }

  private link(text: string, kind: string): HTMLElement {
    return h("a", { href: this.ctx.href("findings", null, kind === "" ? {} : { kind }) }, text);
  }
}
