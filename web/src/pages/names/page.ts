// SPDX-License-Identifier: Apache-2.0
// Groups and the names registered in them: who, where, how many, and how often that changes.
import type { Ctx, MountedPage, Page } from "../../ui/ctx";
import type { Change } from "../../store/signals";
import { measure } from "../../lib/columns";
import { h } from "../../lib/dom";
import { count, type Format, number } from "../../lib/format";
import { card, note, searchKey } from "../../ui/parts";
import { type Table, table } from "../../lib/table";
import { GroupView } from "./group-view";
import { namesOf } from "../../model/known";
import type { TopologyGroup } from "../../model/protocol";
import "../../styles/data.css";
import "./names.css";

export const page: Page = {
  mount: (root, ctx) => new NamesPage(root, ctx),
};

interface Row {
  group: TopologyGroup;

  /** By the newest frame; a topology comes only when something else has changed. */
  names: number | null;
  registrations: number | null;
}

/** A dash where nothing is known, and the least that it is where something is not. */
function total(values: readonly (number | null)[], format: Format): string {
  const known = values.filter((value) => value !== null);
  if (known.length === 0) return format(null);
  const sum = format(known.reduce((all, value) => all + value, 0));
  return known.length < values.length ? `≥ ${sum}` : sum;
}

class NamesPage implements MountedPage {
  private readonly groups: Table<Row>;
  private readonly place = h("div", { class: "names-group" });
  private readonly release: () => void;
  private view: GroupView | null = null;
  private fullest: string | null = null;

  constructor(
    private readonly root: HTMLElement,
    private readonly ctx: Ctx,
  ) {
    this.groups = table<Row>({
      caption: "Groups",
      id: (row) => row.group.name,
      order: { key: "group", direction: "ascending" },
      filter: "",
      empty: "There are no groups: names are registered in groups of nodes.",
      maxHeight: "var(--groups-height)",
      onChoose: (row) => this.choose(row.group.name),
      columns: [
        { key: "group", label: "Group", value: (row) => row.group.name },
        measure("nodes", "Nodes", (row) => row.group.nodes.length, count, { width: "4.6rem" }),
        measure("names", "Names", (row) => row.names, count, {
          width: "5.2rem",
          hint: "The most that any member counted in the last ten seconds; where names come and go, somewhat more than are listed",
        }),
        measure("regs", "Reg./s", (row) => row.registrations, number, {
          width: "5rem",
          hint: "Registrations a second",
        }),
      ],
      totals: (rows) => [
        `${count(rows.length)} groups`,
        null,
        total(
          rows.map((row) => row.names),
          count,
        ),
        total(
          rows.map((row) => row.registrations),
          number,
        ),
      ],
    });
    root.append(
      h(
        "div",
        { class: "names-columns" },
        card("Groups", { hint: "Choose one to see its names." }, this.groups.root),
        this.place,
      ),
    );
    this.release = searchKey(ctx, root, "Search names");
    this.draw();
  }

  update(change: Change): void {
    if (change.has("topology") || change.has("frame") || change.has("route")) this.draw();
    this.view?.update(change);
  }

  destroy(): void {
    this.release();
    this.view?.destroy();
    this.root.replaceChildren();
  }

  private choose(name: string): void {
    this.ctx.setQuery({ group: name, q: "" });
  }

  /** Where none was asked for: the fullest, which tells most; the same one while it is there. */
  private first(groups: readonly TopologyGroup[]): string | null {
    if (!groups.some((group) => group.name === this.fullest)) {
      this.fullest = [...groups].sort((a, b) => (b.names ?? 0) - (a.names ?? 0))[0]?.name ?? null;
    }
    return this.fullest;
  }

  private draw(): void {
    const { topology, frame } = this.ctx.store.shown;
    const groups = topology?.groups ?? [];
    this.groups.rows(
      groups.map((group) => ({
        group,

        names: namesOf(topology, frame, group),
        registrations: frame?.group(group.id)?.["regs_s"] ?? null,
      })),
    );
    const name = this.ctx.route.query["group"] ?? this.first(groups);
    this.groups.mark(name);
    if (this.view?.group !== name) {
      this.view?.destroy();
      this.view = name === null ? null : new GroupView(this.ctx, name);
      this.place.replaceChildren(
        this.view?.root ??
          note(
            topology === null
              ? "Waiting for the server …"
              : "Where there are no groups, there are no names.",
          ),
      );
    }
    this.view?.draw();
  }
}
