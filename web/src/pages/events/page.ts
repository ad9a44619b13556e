// SPDX-License-Identifier: Apache-2.0
// What happened, newest first; one can go to the time of each.
import type { Ctx, MountedPage, Page } from "../../ui/ctx";
import type { Change } from "../../store/signals";
import { earlier, type Filter, kindsOf, LEVELS, merged, passing } from "./model";
import { children as fill, h, text as setText } from "../../lib/dom";
import { clock, count, dateTime, withUnit, messageOf } from "../../lib/format";
import {
  card,
  type Choice,
  choice,
  facts,
  groupLink,
  level,
  nodeLink,
  searchKey,
  closeButton,
} from "../../ui/parts";
import { exportButton } from "../../ui/exporting";
import { names, options } from "../../ui/options";
import { stoppedAt } from "../../ui/period";
import { TimeWatch } from "../../ui/time-watch";
import type { Order } from "../../lib/table-model";
import { type Incident, incidents } from "../../model/incidents";
import { followers, kindText, levelOf, type Row, rowId, rowsOf, textOf } from "./rows";
import { type Table, table } from "../../lib/table";
import type { ClusterEvent, Level } from "../../model/protocol";
import "../../styles/data.css";
import "./events.css";

const OLDER = 500;

export const page: Page = {
  mount: (root, ctx) => new EventsPage(root, ctx),
};

interface Gathered {
  from: readonly unknown[];
  all: readonly ClusterEvent[];
  incidents: readonly (ClusterEvent | Incident)[];
}

class EventsPage implements MountedPage {
  private readonly table: Table<Row>;
  private readonly view: Choice<"" | "each">;
  /** Incidents that are shown with all their events, by the id of the head. */
  private readonly opened = new Set<number>();
  private order: Order = { key: "t", direction: "descending" };
  private readonly kind = h("select", { class: "select", "aria-label": "Kind" });
  private readonly level = h(
    "select",
    { class: "select", "aria-label": "Level" },
    ...LEVELS.map(([value, label]) => h("option", { value }, label)),
  );
  private readonly node = h("select", { class: "select", "aria-label": "Node" });
  private readonly group = h("select", { class: "select", "aria-label": "Group" });
  private readonly more = h(
    "button",
    { type: "button", class: "button", click: () => void this.older() },
    "Load older",
  );
  private readonly chosen = h("div", { class: "chosen", hidden: true });
  private readonly said = h("p", { class: "muted", role: "status" });
  /** Asked for by this page, beside those that the store keeps. */
  private extra: readonly ClusterEvent[] = [];
  private shown: readonly ClusterEvent[] = [];
  private readonly release: () => void;
  private readonly time: TimeWatch;
  private options = "";
  private gathered: Gathered | null = null;

  constructor(
    private readonly root: HTMLElement,
    private readonly ctx: Ctx,
  ) {
    this.table = table<Row>({
      caption: "Events",
      roomy: true,
      id: rowId,
      order: this.order,
      onOrder: (order) => {
        this.order = order;
        this.draw();
      },
      filter: ctx.route.query["q"] ?? "",
      onFilter: (words) => ctx.setQuery({ q: words }),
      filterText: ({ event, incident, part }) =>
        (part ? [event] : (incident?.events ?? [event])).map(textOf).join(" "),
      maxHeight: "max(20rem, calc(100dvh - 19rem))",
      rowClass: ({ part }) => (part ? "incident-part" : null),
      onChoose: (row) => this.choose(row),
      columns: [
        {
          key: "t",
          label: "Time",
          value: (row) => row.place,
          show: ({ event }) =>
            h("span", { class: "num", title: dateTime(event.t) }, clock(event.t)),
          numeric: false,
          width: "5.5rem",
        },
        {
          key: "level",
          label: "Level",
          value: (row) => LEVELS.findIndex(([one]) => one === levelOf(row)),
          show: (row) => level(levelOf(row)),
          width: "6.5rem",
          narrow: "2.4rem",
        },
        {
          key: "text",
          label: "What",
          value: ({ event }) => event.text,
          show: (row) => this.what(row),
        },
        {
          key: "kind",
          label: "Kind",
          value: ({ event }) => event.kind,
          show: ({ event, incident }) =>
            h("span", { class: "muted" }, kindText(event.kind, incident)),
          width: "10rem",
          wide: true,
        },
        {
          key: "where",
          label: "Where",
          value: ({ event }) => event.group ?? event.node ?? null,
          show: ({ event }) =>
            h(
              "span",
              { class: "event-where" },
              event.group ? groupLink(ctx, event.group) : null,
              event.node ? nodeLink(ctx, event.node) : null,
            ),
          width: "16rem",
          wide: true,
        },
      ],
    });
    this.view = choice<"" | "each">(
      "Shown as",
      [
        ["", "Incidents", "Events of one cause in one line"],
        ["each", "Each event", "One line for each event"],
      ],
      "",
      (as) => {
        ctx.setQuery({ as });
        this.draw();
      },
    );
    for (const [select, key] of [
      [this.kind, "kind"],
      [this.level, "level"],
      [this.node, "node"],
      [this.group, "group"],
    ] as const) {
      select.addEventListener("change", () => {
        ctx.setQuery({ [key]: select.value });
        this.draw();
        void this.ask({});
      });
    }
    root.append(
      card(
        "Events",
        {
          hint: "Events of one cause are one incident, which opens. Choose one to see the cluster as it was then.",
          tools: [this.view.root, this.level, this.kind, this.group, this.node],
          testid: "events",
        },
        this.chosen,
        this.table.root,
        h(
          "div",
          { class: "row list-more" },
          this.more,
          exportButton(ctx, "All events that are kept, as a CSV file", () => ({
            what: "events",
            from: 0,
          })),
          this.said,
        ),
      ),
    );
    this.time = new TimeWatch(ctx, () => void this.ask({}));
    this.release = searchKey(ctx, root);
    this.draw();
    if (this.filtered()) void this.ask({});
  }

  update(change: Change): void {
    if (change.has("hello")) this.extra = [];
    if (
      ["events", "topology", "route", "time", "hello"].some((kind) => change.has(kind as "events"))
    )
      this.draw();
    this.time.update(change);
  }

  destroy(): void {
    this.release();
    this.time.destroy();
    this.root.replaceChildren();
  }

  /** Shows one event in full, and the cluster as it was then. */
  private choose({ event, incident }: Row): void {
    const close = () => {
      this.chosen.hidden = true;
    };
    const details = Object.entries(event.details ?? {});
    fill(
      this.chosen,
      h(
        "div",
        { class: "row" },
        level(event.level),
        h("span", { class: "num" }, dateTime(event.t)),
        h("span", { class: "muted" }, kindText(event.kind, incident)),
        event.group ? groupLink(this.ctx, event.group) : null,
        event.node ? nodeLink(this.ctx, event.node) : null,
        closeButton(close, { class: "icon-button event-close" }),
      ),
      h("p", {}, event.text),
      details.length > 0
        ? facts(details.map(([key, value]) => [key.replaceAll("_", " "), withUnit(value, null)]))
        : null,
    );
    this.chosen.hidden = false;
    this.ctx.store.seek(event.t);
    this.ctx.announce(`Shown as of ${clock(event.t)}`);
  }

  private filter(): Filter {
    const { query } = this.ctx.route;
    return {
      kind: query["kind"] ?? "",
      level: (query["level"] ?? "") as Level | "",
      node: query["node"] ?? "",
      group: query["group"] ?? "",
      until: stoppedAt(this.ctx),
    };
  }

  private filtered(): boolean {
    const { kind, node, group } = this.filter();
    return kind !== "" || node !== "" || group !== "" || stoppedAt(this.ctx) !== null;
  }

  private draw(): void {
    const filter = this.filter();
    const { all, incidents } = this.gather();
    this.shown = passing(all, filter);
    this.drawOptions(all, filter);
    const active = filter.kind || filter.level || filter.node || filter.group;
    this.table.empty(
      active
        ? "No event passes these filters."
        : filter.until !== null
          ? `The history has no event before ${clock(filter.until)}.`
          : "Nothing has happened yet: nodes and groups that come, go or change are listed here.",
    );
    const as = this.ctx.route.query["as"] === "each" ? "each" : "";
    this.view.choose(as);
    // In another order than that of time the events of an incident would stand apart.
    const whole = as === "" && this.order.key === "t";
    const rows = whole
      ? rowsOf(incidents, new Set(this.shown), this.opened, this.order.direction)
      : this.shown.map((event) => ({ event, place: event.id, part: false, incident: null }));
    this.table.rows(rows);
    const last = filter.until === null ? undefined : this.shown[this.shown.length - 1];
    const at =
      last &&
      (rows.find(({ event, part }) => part && event === last) ??
        rows.find(({ event, incident }) => event === last || incident?.events.includes(last)));
    this.table.mark(at ? rowId(at) : null);
  }

  /** Worked out when events or the topology changed, and not for each frame. */
  private gather(): Gathered {
    const { events, shown } = this.ctx.store;
    const { topology } = shown;
    const { extra } = this;
    const from = [events, extra, topology];
    if (this.gathered !== null && from.every((one, i) => one === this.gathered?.from[i]))
      return this.gathered;
    const all = merged(events, extra);
    const groupsOf = (name: string): string[] => {
      const node = topology?.nodeNamed(name);
      return node === undefined ? [] : (topology?.groupsOf(node) ?? []).map((group) => group.name);
    };
    this.gathered = { from, all, incidents: incidents(all, groupsOf) };
    return this.gathered;
  }

  private what({ event, incident, part }: Row): HTMLElement {
    if (incident === null || part)
      return h("span", { class: "lines", title: event.text }, event.text);
    const more = incident.events.length - 1;
    const open = this.opened.has(event.id);
    const toggle = () => {
      if (!this.opened.delete(event.id)) this.opened.add(event.id);
      this.draw();
    };
    return h(
      "span",
      { class: "lines", title: event.text },
      h(
        "button",
        { type: "button", class: "incident-toggle", "aria-expanded": String(open), click: toggle },
        count(more),
        h("span", { class: "incident-word" }, followers(incident, more)),
      ),
      event.text,
    );
  }

  private drawOptions(all: readonly ClusterEvent[], filter: Filter): void {
    const { topology } = this.ctx.store.shown;
    const kinds = kindsOf(all, filter.kind);
    const nodes = names(topology?.nodes, filter.node);
    const groups = names(topology?.groups, filter.group);
    const key = JSON.stringify([kinds, nodes, groups, filter]);
    if (key === this.options) return;
    this.options = key;
    this.level.value = filter.level;
    options(this.kind, "All kinds", kinds, filter.kind, (kind) => kindText(kind));
    options(this.node, "All nodes", nodes, filter.node);
    options(this.group, "All groups", groups, filter.group);
  }

  private async older(): Promise<void> {
    const before = earlier(this.shown, this.gather().all);
    this.more.disabled = true;
    const found = await this.ask(before === null ? {} : { before });
    this.more.disabled = false;
    setText(
      this.said,
      found === null ? "" : found === 0 ? "There are no older ones." : `${found} more.`,
    );
  }

  /** Asks with the filters that the server knows; gives how many were new, null where it failed. */
  private async ask(more: { before?: number }): Promise<number | null> {
    const { kind, node, group, until } = this.filter();
    try {
      const { events } = await this.ctx.store.request("events", {
        limit: OLDER,
        ...more,
        ...(kind === "" ? {} : { kinds: [kind] }),
        ...(node === "" ? {} : { node }),
        ...(group === "" ? {} : { group }),
        ...(until === null ? {} : { to: until }),
      });
      const before = this.shown.length;
      this.extra = merged(this.extra, events);
      this.draw();
      return this.shown.length - before;
    } catch (error) {
      if (more.before !== undefined) this.ctx.toast(messageOf(error));
      return null;
    }
  }
}
