// SPDX-License-Identifier: Apache-2.0
// Looks at nodes and acts on them: an action, where, what it takes; the requests, and what nodes answer.
import type { Ctx, MountedPage, Page } from "../../ui/ctx";
import type { Change } from "../../store/signals";
import { arrange, children as fill, h, set, text as setText } from "../../lib/dom";
import { card, note, searchKey } from "../../ui/parts";
import { clock, dateTime, messageOf } from "../../lib/format";
import { getJson, postJson } from "../../store/http";
import { where } from "../../model/places";
import { PlaceSelect } from "../../ui/place-select";
import { saidName } from "../../ui/said-name";
import { answer } from "./answer";
import {
  type Action,
  allowed,
  args,
  type Catalogue,
  KINDS,
  type Listed,
  type Request,
  title,
} from "./model";
import { fields, type Fields } from "./form";
import "../../styles/data.css";
import "./actions.css";

const EVERY_MS = 1000;
const LIST_MS = 3000;

export const page: Page = {
  mount: (root, ctx) => new ActionsPage(root, ctx),
};

class ActionsPage implements MountedPage {
  private readonly action = h("select", {
    class: "select",
    "aria-label": "Action",
    "data-search": true,
    "data-testid": "action",
  });
  private readonly place: PlaceSelect;
  private readonly about = h("p", { class: "muted action-about" });
  private readonly form = h("form", { class: "action-form", "aria-label": "Action" });
  private readonly go = h(
    "button",
    { type: "submit", class: "button button-primary", "data-testid": "run" },
    "Run",
  );
  private readonly problem = h("p", { class: "problem", role: "alert", hidden: true });
  private readonly result = h("div", { class: "action-result", hidden: true });
  private readonly list = h("ul", { class: "requests", "data-testid": "requests" });
  private readonly release: () => void;
  private catalogue: Catalogue | null = null;
  private fields: Fields | null = null;
  private drawnAction = "";
  private shownRequest: string | null = null;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private listTimer: ReturnType<typeof setTimeout> | undefined;
  private ended = false;

  constructor(
    private readonly root: HTMLElement,
    private readonly ctx: Ctx,
  ) {
    this.place = new PlaceSelect(ctx);
    this.action.addEventListener("change", () => this.choose(this.action.value, {}));
    this.form.addEventListener("submit", (event) => {
      event.preventDefault();
      void this.run();
    });
    root.append(
      card(
        "Actions",
        {
          hint: "What is asked of nodes or done to them. Everything is in the audit log; a request ends a minute after the last look at it.",
          testid: "actions",
        },
        h("div", { class: "row action-choice" }, this.action, this.place.root),
        this.about,
        this.form,
        this.problem,
        this.result,
      ),
      card(
        "Requests",
        { hint: "Those that run, and those that ended in the last ten minutes." },
        this.list,
      ),
    );
    this.release = searchKey(ctx, root, "Choose an action");
    void this.load();
  }

  update(change: Change): void {
    if (change.has("topology")) this.place.draw();
    if (change.has("hello")) void this.load();
    if (change.has("route")) this.routed();
  }

  destroy(): void {
    this.ended = true;
    clearTimeout(this.timer);
    clearTimeout(this.listTimer);
    this.release();
    this.root.replaceChildren();
  }

  private async load(): Promise<void> {
    try {
      this.catalogue = await getJson<Catalogue>("api/v1/actions");
    } catch (error) {
      this.fail(error);
      return;
    }
    if (this.ended) return;
    const { actions } = this.catalogue;
    fill(
      this.action,
      ...KINDS.map(([kind, label]) => {
        const some = actions.filter((one) => one.kind === kind);
        return some.length === 0
          ? null
          : h(
              "optgroup",
              { label },
              ...some.map((one) => h("option", { value: one.name }, title(one.name))),
            );
      }),
    );
    this.place.draw();
    this.routed();
    this.later(0);
    void this.follow();
  }

  /** The address says which action, where, and what it takes. */
  private routed(): void {
    if (this.catalogue === null) return;
    const { arg, query } = this.ctx.route;
    const name = this.catalogue.actions.some((one) => one.name === arg) ? arg : null;
    this.draw(name ?? this.catalogue.actions[0]?.name ?? "", query);
    this.place.draw();
    if (query["request"] !== undefined && query["request"] !== this.shownRequest)
      this.open(query["request"]);
  }

  private choose(name: string, query: Record<string, string>): void {
    const on = this.ctx.route.query["on"] ?? "";
    this.close();
    this.ctx.go("actions", name, { ...(on === "" ? {} : { on }), ...query });
  }

  private chosen(): Action | null {
    return this.catalogue?.actions.find((one) => one.name === this.action.value) ?? null;
  }

  /** What somebody has typed stays when the server says the same again, as it does whenever the page is connected. */
  private draw(name: string, query: Readonly<Record<string, string>>): void {
    this.action.value = name;
    const action = this.chosen();
    if (action === null || this.catalogue === null) return;
    const may = allowed(this.catalogue.role, action);
    const key = JSON.stringify([action, may, query["arg"], query["value"]]);
    if (key === this.drawnAction) return;
    this.drawnAction = key;
    this.fields = fields(action.params, {
      [query["arg"] ?? ""]: query["value"] ?? "",
    });
    setText(this.about, `${title(action.about)}. ${action.effect}`);
    setText(this.go, action.kind === "look" ? "Look" : "Run");
    this.go.disabled = !may;
    fill(
      this.form,
      this.fields.root,
      h("div", { class: "row" }, this.go),
      may
        ? null
        : note(
            `This needs the role ${action.role}, and yours is ${this.catalogue.role}: ` +
              "a dashboard that was started with --write gives it.",
          ),
    );
    this.problem.hidden = true;
  }

  private async run(): Promise<void> {
    const action = this.chosen();
    if (action === null || this.fields === null) return;
    const on = where(this.place.value);
    if (on === null) {
      this.place.focus();
      this.fail("Choose where: a node, a group or a family.");
      return;
    }
    const given = args(action.params, this.fields.values());
    if ("wrong" in given) {
      this.fields.focus(given.name);
      this.fail(given.wrong);
      return;
    }
    this.go.disabled = true;
    this.problem.hidden = true;
    try {
      const { id } = await postJson<{ id: string }>(
        "api/v1/actions",
        { action: action.name, on, args: given.args },
        saidName(),
      );
      this.open(id);
      this.later(0);
    } catch (error) {
      this.fail(error);
    } finally {
      this.go.disabled = false;
    }
  }

  private fail(error: unknown): void {
    setText(this.problem, messageOf(error));
    this.problem.hidden = false;
  }

  private open(id: string): void {
    clearTimeout(this.timer);
    this.shownRequest = id;
    this.ctx.setQuery({ request: id });
    fill(this.result, h("p", { class: "muted", role: "status" }, "Asking ..."));
    this.result.hidden = false;
    void this.follow();
  }

  private close(): void {
    clearTimeout(this.timer);
    this.shownRequest = null;
    this.result.hidden = true;
    this.result.replaceChildren();
    this.ctx.setQuery({ request: "" });
  }

  /** Whoever looks attends it; a hidden page does not. */
  private async follow(): Promise<void> {
    const id = this.shownRequest;
    if (id === null || this.ended) return;
    let running = true;
    if (!document.hidden) {
      try {
        const request = await getJson<Request>(`api/v1/requests/${encodeURIComponent(id)}`);
        if (this.ended || this.shownRequest !== id) return;
        running = request.state === "running";
        this.show(request);
      } catch (error) {
        if (this.ended || this.shownRequest !== id) return;
        running = false;
        this.close();
        this.fail(error);
      }
    }
    clearTimeout(this.timer);
    if (running) this.timer = setTimeout(() => void this.follow(), EVERY_MS);
  }

  private show(request: Request): void {
    const focused = document.activeElement?.getAttribute("data-keep");
    fill(
      this.result,
      answer(this.ctx, request, {
        stop: () => void this.stop(request.id),
        close: () => this.close(),
        next: (action, arg, value, node) =>
          this.ctx.go("actions", action, { on: `node:${node}`, arg, value }),
      }),
    );
    if (focused)
      this.result.querySelector<HTMLElement>(`[data-keep="${CSS.escape(focused)}"]`)?.focus();
    if (request.state !== "running")
      this.ctx.announce(`${title(request.action)}: ${request.state}`);
  }

  private async stop(id: string): Promise<void> {
    try {
      await postJson(`api/v1/requests/${encodeURIComponent(id)}/stop`, {}, saidName());
      void this.follow();
      this.later(0);
    } catch (error) {
      this.fail(error);
    }
  }

  private later(ms: number): void {
    clearTimeout(this.listTimer);
    if (this.ended) return;
    this.listTimer = setTimeout(() => void this.drawList(), ms);
  }

  private async drawList(): Promise<void> {
    if (!document.hidden) {
      try {
        const { requests } = await getJson<{ requests: Listed[] }>("api/v1/requests");
        if (this.ended) return;
        const kept = new Map([...this.list.children].map((one) => [one.id, one]));
        arrange(
          this.list,
          requests.length === 0
            ? [h("li", { class: "muted" }, "None in the last ten minutes.")]
            : requests.map((one) => this.line(one, kept.get(`request-${one.id}`))),
        );
      } catch {
        // The banner says that the server does not answer.
      }
    }
    this.later(LIST_MS);
  }

  private line(one: Listed, old: Element | undefined): Element {
    const text = JSON.stringify([one.state, one.nodes]);
    if (old?.getAttribute("data-text") === text) return old;
    const on = Object.values(one.on).flat().join(", ");
    const line = h(
      "li",
      { id: `request-${one.id}`, class: "request-line" },
      h(
        "button",
        { type: "button", class: "request-open", click: () => this.open(one.id) },
        h("span", { class: `request-state request-${one.state}` }, one.state),
        h("strong", {}, title(one.action)),
        h("span", { class: "muted" }, `on ${on}`),
        h("span", { class: "muted" }, `by ${one.who.name}`),
        h("span", { class: "muted num", title: dateTime(one.at) }, clock(one.at)),
      ),
    );
    set(line, "data-text", text);
    return line;
  }
}
