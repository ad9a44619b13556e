// SPDX-License-Identifier: Apache-2.0
// The tables of families, of their instances, and of the groups.
import type { Ctx } from "../../ui/ctx";
import type { Instance, Operation } from "../../model/protocol";
import type { FamilyRow } from "../../model/operation";
import { stateMark } from "../../ui/operation";
import { groupLink, nodeLink } from "../../ui/parts";
import { type Table, table } from "../../lib/table";
import { h } from "../../lib/dom";
import { count } from "../../lib/format";

export type Group = Operation["status"]["groups"][number];

export const familiesTable = (choose: (name: string) => void): Table<FamilyRow> =>
  table<FamilyRow>({
    caption: "Families",
    id: ({ name }) => name,
    order: { key: "name", direction: "ascending" },
    maxHeight: "20rem",
    empty: "There is no family.",
    onChoose: ({ name }) => choose(name),
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

export const instancesTable = (ctx: Ctx): Table<Instance> =>
  table<Instance>({
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
        show: ({ node }) => (node === null ? "" : twoLines(node, place(ctx, node))),
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

export const groupsTable = (ctx: Ctx): Table<Group> =>
  table<Group>({
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

/** A node that is not watched has no page. */
function place(ctx: Ctx, node: string): HTMLElement | string {
  return ctx.store.shown.topology?.nodeNamed(node) === undefined ? node : nodeLink(ctx, node);
}

/** On a phone a name takes two lines, and where they are too few its title tells the rest. */
function twoLines(title: string, shown: string | HTMLElement): HTMLElement {
  return h("span", { class: "lines", title }, shown);
}
