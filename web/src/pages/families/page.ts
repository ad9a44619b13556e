// SPDX-License-Identifier: Apache-2.0
// The families of the cluster that a service of operations keeps, the instances of one, and the groups.
import type { Ctx, MountedPage, Page } from "../../ui/ctx";
import type { Instance, Operation } from "../../model/protocol";
import { families, type FamilyRow, familyOf, stateWords } from "../../model/operation";
import { asked, type Asked, stateMark } from "../../ui/operation";
import { card, groupLink, nodeLink, searchKey } from "../../ui/parts";
import { type Table, table } from "../../lib/table";
import { h, text as setText } from "../../lib/dom";
import { count } from "../../lib/format";
import "../../styles/data.css";
import "../../styles/operation.css";

export const page: Page = {
  title: "Families",
  mount: (root, ctx): MountedPage => new FamiliesPage(root, ctx),
};

type Group = Operation["status"]["groups"][number];

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
    this.table = table<FamilyRow>({
      caption: "Families",
      id: ({ name }) => name,
      order: { key: "name", direction: "ascending" },
      maxHeight: "20rem",
      empty: "There is no family.",
      onChoose: ({ name }) => this.choose(name === this.chosen() ? null : name),
      columns: [
        { key: "name", label: "Family", value: ({ name }) => name, width: "16rem", narrow: "6rem" },
        {
          key: "up",
          label: "Up",
          value: ({ up }) => up,
          show: ({ up, instances }) => `${count(up)} of ${count(instances.length)}`,
          numeric: true,
          width: "8rem",
          narrow: "5rem",
        },
        {
          key: "states",
          label: "States",
          value: ({ states }) => states.map(([state]) => state).join(" "),
          show: ({ states }) =>
            h(
              "span",
              { class: "tags" },
              ...states.map(([state, n]) =>
                stateMark(state, `${count(n)} ${state.replaceAll("_", " ")}`),
              ),
            ),
        },
        {
          key: "release",
          label: "Release",
          value: ({ releases }) => releases.join(", "),
          width: "14rem",
          wide: true,
        },
        {
          key: "hosts",
          label: "Hosts",
          value: ({ hosts }) => hosts,
          numeric: true,
          width: "6rem",
          wide: true,
        },
      ],
    });
    this.instances = table<Instance>({
      caption: "Instances",
      roomy: true,
      id: ({ id }) => id,
      order: { key: "id", direction: "ascending" },
      maxHeight: "28rem",
      filter: ctx.route.query["q"] ?? "",
      onFilter: (q) => ctx.setQuery({ q }),
      filterText: ({ id, node, host, state, why }) => [id, node, host, state, why].join(" "),
      empty: "No instance passes this filter.",
      columns: [
        {
          key: "id",
          label: "Instance",
          value: ({ id }) => id,
          show: ({ id }) => twoLines(id, id),
          width: "12rem",
          narrow: "6rem",
        },
        {
          key: "state",
          label: "State",
          value: ({ state }) => state,
          show: ({ state, why }) => h("span", { title: why ?? undefined }, stateMark(state)),
          width: "9rem",
          narrow: "7rem",
        },
        {
          key: "node",
          label: "Node",
          value: ({ node }) => node ?? "",
          show: ({ node }) => this.place(node),
        },
        { key: "host", label: "Host", value: ({ host }) => host ?? "", width: "12rem", wide: true },
        {
          key: "release",
          label: "Release",
          value: ({ release }) => release ?? "",
          width: "10rem",
          wide: true,
        },
        {
          key: "why",
          label: "Why",
          value: ({ why }) => why ?? "",
          show: ({ why }) => h("span", { title: why ?? undefined }, why),
          wide: true,
        },
      ],
    });
    this.groups = table<Group>({
      caption: "Groups",
      id: ({ name }) => name,
      order: { key: "name", direction: "ascending" },
      maxHeight: "20rem",
      empty: "The file has no group.",
      columns: [
        {
          key: "name",
          label: "Group",
          value: ({ name }) => name,
          show: ({ name }) => groupLink(ctx, name),
        },
        {
          key: "running",
          label: "Members in it",
          value: ({ running }) => running,
          show: ({ running, members }) => `${count(running)} of ${count(members)}`,
          numeric: true,
          width: "9rem",
          narrow: "7rem",
        },
        {
          key: "state",
          label: "State",
          value: ({ state }) => state,
          show: ({ state }) => stateMark(state === "whole" ? "up" : state, state),
          width: "10rem",
          narrow: "7.4rem",
        },
      ],
    });
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

  update(change: Parameters<NonNullable<MountedPage["update"]>>[0]): void {
    if (change.has("hello")) this.asked.refresh();
    if (change.has("route")) this.draw();
  }

  destroy(): void {
    this.asked.destroy();
    this.release();
    this.root.replaceChildren();
  }

  /** Whoever is not watched has no page. */
  private place(node: string | null): HTMLElement | string {
    if (node === null) return "";
    const watched = this.ctx.store.shown.topology?.nodeNamed(node) !== undefined;
    return twoLines(node, watched ? nodeLink(this.ctx, node) : node);
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

/** On a phone a name takes two lines, and where they are too few its title tells the rest. */
function twoLines(title: string, shown: string | HTMLElement): HTMLElement {
  return h("span", { class: "lines", title }, shown);
}
