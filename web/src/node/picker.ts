// SPDX-License-Identifier: Apache-2.0
// All nodes with what tells them apart at a glance; one is chosen.
import type { Ctx, MountedPage } from "../app/ctx";
import { card, level } from "../lib/parts";
import { cellBar } from "../lib/bars";
import { table } from "../lib/table";
import type { TopologyNode } from "../store/protocol";
import { h } from "../lib/dom";
import { bytes, count, messageRate, number, share } from "../lib/format";

interface Row {
  node: TopologyNode;
  groups: string;
  metric: (name: string) => number | null;
}

export function mountPicker(root: HTMLElement, ctx: Ctx): MountedPage {
  const numberColumn = (
    key: string,
    label: string,
    show: (value: number | null) => string | HTMLElement,
    width: string,
    wide = false,
  ) => ({
    key,
    label,
    value: (row: Row) => row.metric(key),
    show: (row: Row) => show(row.metric(key)),
    numeric: true,
    width,
    wide,
  });
  const list = table<Row>({
    caption: "Nodes",
    id: (row) => row.node.name,
    order: { key: "node", direction: "ascending" },
    filter: ctx.route.query["q"] ?? "",
    onFilter: (words) => ctx.setQuery({ q: words }),
    filterText: (row) => `${row.node.name} ${row.groups} ${row.node.status}`,
    empty: "No node is watched yet.",
    maxHeight: "calc(100vh - 15rem)",
    columns: [
      {
        key: "node",
        label: "Node",
        value: (row) => row.node.name,
        show: (row) => h("a", { href: ctx.href("node", row.node.name), class: "place" }, row.node.name),
      },
      {
        key: "status",
        label: "Status",
        value: (row) => row.node.status,
        show: (row) => status(row.node),
        width: "7rem",
      },
      {
        key: "groups",
        label: "Groups",
        value: (row) => row.groups || null,
        show: (row) => row.groups || "free node",
        wide: true,
      },
      numberColumn("util", "Busy", (value) => (value === null ? "–" : cellBar(value, share(value))), "7rem"),
      numberColumn("run_queue", "Waiting", number, "5.5rem"),
      numberColumn("procs", "Processes", count, "6.5rem", true),
      numberColumn("mem", "Memory", bytes, "6.5rem", true),
      numberColumn("out_msgs_s", "Sent", messageRate, "7.5rem", true),
    ],
    rowClass: (row) => (row.node.status === "up" ? null : "down"),
    onChoose: (row) => ctx.go("node", row.node.name),
  });
  root.append(
    card("Nodes", { hint: "Choose a node to see its schedulers, memory, processes and links." }, list.root),
  );

  const draw = () => {
    const { topology, frame } = ctx.store.shown;
    list.rows(
      (topology?.nodes ?? []).map((node) => ({
        node,
        groups:
          topology
            ?.groupsOf(node)
            .map((group) => group.name)
            .join(", ") ?? "",
        metric: (name) => {
          const value = frame?.value(node.id, name) ?? NaN;
          return Number.isFinite(value) ? value : null;
        },
      })),
    );
  };
  draw();
  return {
    update(change) {
      if (change.has("frame") || change.has("topology")) draw();
    },
    destroy: () => root.replaceChildren(),
  };
}

/** A node's status with its own sign. */
export function status(node: TopologyNode): HTMLElement {
  if (node.status === "up") return h("span", { class: "status-up" }, h("i", { class: "dot" }), "up");
  const shown = level(node.status === "down" ? "error" : "warning");
  shown.lastChild?.replaceWith(node.status);
  if (node.why) shown.title = node.why;
  return shown;
}
