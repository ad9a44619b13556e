// SPDX-License-Identifier: Apache-2.0
// All nodes with what tells them apart at a glance; one is chosen.
import type { Ctx, MountedPage } from "../../ui/ctx";
import { card, level, searchKey } from "../../ui/parts";
import { cellBar } from "../../lib/bars";
import { exportButton } from "../../ui/exporting";
import { table } from "../../lib/table";
import type { TopologyNode } from "../../model/protocol";
import { h, set } from "../../lib/dom";
import { measure } from "../../lib/columns";
import { bytes, count, type Maybe, number, share, UNKNOWN } from "../../lib/format";

interface Row {
  node: TopologyNode;
  groups: string;
  metric: (name: string) => number | null;
}

export function mountPicker(root: HTMLElement, ctx: Ctx): MountedPage {
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
        show: (row) =>
          h("a", { href: ctx.href("node", row.node.name), class: "place" }, row.node.name),
      },
      {
        key: "status",
        label: "Status",
        value: (row) => row.node.status,
        show: (row) => status(row.node),
        width: "7rem",
        narrow: "2.2rem",
      },
      {
        key: "groups",
        label: "Groups",
        value: (row) => row.groups || null,
        show: (row) => row.groups || "free node",
        wide: true,
      },
      measure("util", "Utilisation", of("util"), utilisation, {
        width: "7rem",
        narrow: "5.8rem",
        hint: "Share of the time in which the normal schedulers work, on average",
      }),
      measure("run_queue", "Run queue", of("run_queue"), number, {
        width: "5.5rem",
        narrow: "4.6rem",
        hint: "Processes that could run and wait for a scheduler",
      }),
      measure("procs", "Processes", of("procs"), count, { width: "6.5rem", wide: true }),
      measure("mem", "Memory", of("mem"), bytes, { width: "6.5rem", wide: true }),
      measure("out_msgs_s", "msg/s sent", of("out_msgs_s"), number, {
        width: "6.5rem",
        wide: true,
        hint: "Messages to other nodes a second",
      }),
    ],
    rowClass: (row) => (row.node.status === "up" ? null : "down"),
    onChoose: (row) => ctx.go("node", row.node.name),
  });
  root.append(
    card(
      "Nodes",
      {
        hint: "Choose a node to see its schedulers, memory, processes and links.",
        tools: [
          exportButton(ctx, "All nodes over the last five minutes, as a CSV file", () => ({
            what: "nodes",
          })),
        ],
      },
      list.root,
    ),
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
  const release = searchKey(ctx, root);
  return {
    update(change) {
      if (change.has("frame") || change.has("topology")) draw();
    },
    destroy() {
      release();
      root.replaceChildren();
    },
  };
}

const of =
  (name: string) =>
  (row: Row): number | null =>
    row.metric(name);

const utilisation = (value: Maybe): HTMLElement | string =>
  typeof value === "number" ? cellBar(value, share(value)) : UNKNOWN;

/** A node's status with its own sign. */
export function status(node: TopologyNode): HTMLElement {
  if (node.status === "up")
    return h("span", { class: "status-up" }, h("i", { class: "dot" }), "up");
  const shown = level(node.status === "down" ? "error" : "warning");
  shown.lastChild?.replaceWith(node.status);
  set(shown, "title", node.why);
  return shown;
}
