// SPDX-License-Identifier: Apache-2.0
// The families of the cluster that a service of operations keeps, the instances of one, and the groups.
import type { Ctx, MountedPage, Page } from "../../ui/ctx";
import type { Change } from "../../store/signals";
import type { Instance, Operation } from "../../model/protocol";
import { families, type FamilyRow, familyOf, stateWords } from "../../model/operation";
import { asked, type Asked } from "../../ui/operation";
import { card, searchKey } from "../../ui/parts";
import type { Table } from "../../lib/table";
import { h, text as setText } from "../../lib/dom";
import { familiesTable, type Group, groupsTable, instancesTable } from "./tables";
import "../../styles/data.css";
import "../../styles/operation.css";

export const page: Page = {
  mount: (root, ctx) => new FamiliesPage(root, ctx),
};

class FamiliesPage implements MountedPage {
  private readonly head = h("p", { class: "muted", role: "status", "data-testid": "ops-cluster" });
  private readonly table: Table<FamilyRow>;
  private readonly instances: Table<Instance>;
  private readonly groups: Table<Group>;
  private readonly title = h("h2", {});
  private readonly all = h(
    "button",
    { type: "button", class: "button", click: () => this.choose(null) },
    "Show all instances",
  );
  private readonly parts: HTMLElement[];
  private readonly asked: Asked;
  private readonly release: () => void;
  private operation: Operation | null = null;

  constructor(
    private readonly root: HTMLElement,
    private readonly ctx: Ctx,
  ) {
    this.table = familiesTable((name) => this.choose(name === this.chosen() ? null : name));
    this.instances = instancesTable(ctx);
    this.groups = groupsTable(ctx);
    this.parts = [
      card(
        "Families",
        { hint: "Choose a family to see its instances alone.", testid: "ops-families" },
        this.table.root,
      ),
      h(
        "section",
        { class: "card", "aria-label": "Instances", "data-testid": "ops-instances" },
        h("div", { class: "card-head" }, this.title, h("div", { class: "card-tools" }, this.all)),
        this.instances.root,
      ),
      card("Groups", {}, this.groups.root),
    ];
    this.asked = asked(ctx, (operation) => this.show(operation));
    root.append(
      h("div", { class: "page-head" }, h("div", {}, h("h1", {}, "Families"), this.head)),
      this.asked.note,
      ...this.parts,
    );
    this.release = searchKey(ctx, root, "Search the instances");
    this.draw();
  }

  update(change: Change): void {
    if (change.has("hello")) this.asked.refresh();
    if (change.has("route")) this.draw();
  }

  destroy(): void {
    this.asked.destroy();
    this.release();
    this.root.replaceChildren();
  }

  private chosen(): string | null {
    return this.ctx.route.arg;
  }

  private choose(family: string | null): void {
    const { q } = this.ctx.route.query;
    this.ctx.go("families", family, q === undefined ? {} : { q });
  }

  private show(operation: Operation | null): void {
    this.operation = operation;
    this.draw();
  }

  private draw(): void {
    const { operation } = this;
    for (const part of this.parts) part.hidden = operation === null;
    if (operation === null) return setText(this.head, "");
    const { status } = operation;
    const chosen = this.chosen();
    setText(
      this.head,
      `Cluster ${status.cluster}, revision ${status.revision}. ${stateWords(status)}`,
    );
    this.table.rows(families(status.instances));
    this.table.mark(chosen);
    setText(this.title, chosen === null ? "Instances" : `Instances of ${chosen}`);
    this.all.hidden = chosen === null;
    this.instances.rows(
      status.instances.filter(({ id }) => chosen === null || familyOf(id) === chosen),
    );
    this.groups.rows(status.groups);
  }
}
