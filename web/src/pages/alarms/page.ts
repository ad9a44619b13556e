// SPDX-License-Identifier: Apache-2.0
// What is wrong, who has seen it, and what is silenced: of now, whatever time is shown.
import type { Ctx, MountedPage, Page } from "../../ui/ctx";
import type { Change } from "../../store/signals";
import { counted, type Shown, silenced, STATES, tagsOf, wanted } from "./model";
import { AlarmCard } from "./alarm-card";
import { arrange, children as fill, h, set, text as setText } from "../../lib/dom";
import { dateTime, messageOf } from "../../lib/format";
import { type Choice, choice } from "../../ui/parts";
import type { Alarm, AlarmState, Silence } from "../../model/protocol";
import { keepName, saidName } from "../../ui/said-name";
import { options } from "../../ui/options";
import "../../styles/data.css";
import "../../styles/findings.css";
import "./alarms.css";

/** As many as are open without being asked for. */
const FEW = 3;

export const page: Page = {
  mount: (root, ctx) => new AlarmsPage(root, ctx),
};

class AlarmsPage implements MountedPage {
  private readonly list = h("div", { class: "findings", "data-testid": "alarms" });
  private readonly head = h("p", { class: "muted", role: "status" });
  private readonly tag = h("select", { class: "select", "aria-label": "Tag" });
  private readonly silences = h("section", { class: "card silences", "aria-label": "Silences" });
  private readonly name = h("input", {
    class: "input alarm-name",
    type: "text",
    maxlength: 64,
    placeholder: "Your name",
    "aria-label": "Your name, beside what you say",
  });
  private readonly note = h(
    "p",
    { class: "note" },
    "This dashboard is read-only: who starts it with --write lets people acknowledge, comment and silence.",
  );
  private readonly severity: Choice<Shown>;
  private readonly states: Choice<AlarmState>;
  private drawn = new Map<string, AlarmCard>();
  private readonly toggled = new Map<string, boolean>();
  private tags = "";
  private silent = "";

  constructor(
    private readonly root: HTMLElement,
    private readonly ctx: Ctx,
  ) {
    this.severity = choice<Shown>(
      "Severity",
      [
        ["all", "All"],
        ["major", "Major"],
        ["minor", "Minor"],
      ],
      this.chosenSeverity(),
      (value) => this.filter({ severity: value === "all" ? "" : value }),
    );
    this.states = choice<AlarmState>("State", STATES, this.chosenState(), (value) =>
      this.filter({ state: value === "raised" ? "" : value }),
    );
    this.tag.addEventListener("change", () => this.filter({ tag: this.tag.value }));
    this.name.value = saidName();
    this.name.addEventListener("change", () => keepName(this.name.value.trim()));
    root.append(
      h(
        "div",
        { class: "page-head" },
        h("div", {}, h("h1", {}, "Alarms"), this.head),
        h(
          "div",
          { class: "card-tools" },
          this.states.root,
          this.tag,
          this.severity.root,
          this.name,
        ),
      ),
      this.note,
      this.silences,
      this.list,
    );
    this.draw();
  }

  update(change: Change): void {
    if (["alarms", "hello", "route", "connection"].some((kind) => change.has(kind as "route")))
      this.draw();
  }

  destroy(): void {
    this.root.replaceChildren();
  }

  private chosenSeverity(): Shown {
    const asked = this.ctx.route.query["severity"];
    return asked === "major" || asked === "minor" ? asked : "all";
  }

  private chosenState(): AlarmState {
    const asked = this.ctx.route.query["state"];
    return asked === "acknowledged" || asked === "cleared" ? asked : "raised";
  }

  private filter(query: Record<string, string>): void {
    this.ctx.setQuery(query);
    this.draw();
  }

  private draw(): void {
    const { alarms, hello, recording } = this.ctx.store;
    const writable = hello?.writable === true;
    this.note.hidden = writable || hello === null;
    this.name.hidden = !writable;
    const filter = {
      state: this.chosenState(),
      severity: this.chosenSeverity(),
      tag: this.ctx.route.query["tag"] ?? "",
    };
    this.states.choose(filter.state);
    this.severity.choose(filter.severity);
    if (alarms === null || recording !== null) {
      setText(
        this.head,
        recording === null
          ? "Waiting for the server …"
          : "A recording holds no alarms: go back to the present.",
      );
      this.silences.hidden = true;
      return this.drawCards([], null);
    }
    setText(this.head, counted(alarms.alarms, alarms.total));
    this.drawTags(alarms.alarms, filter.tag);
    this.drawSilences(alarms.silences, writable);
    const shown = wanted(alarms.alarms, filter);
    this.drawCards(
      shown,
      alarms.alarms.some((alarm) => alarm.state !== "cleared")
        ? "None has this state, severity and tag."
        : "Nothing is wrong. Rules and findings are checked every second.",
    );
  }

  private drawCards(alarms: readonly Alarm[], otherwise: string | null): void {
    const now = Date.now();
    const before = this.drawn;
    this.drawn = new Map();
    const says = {
      name: () => this.named(),
      writable: () => this.ctx.store.hello?.writable === true,
    };
    alarms.forEach((alarm, i) => {
      const one =
        before.get(alarm.id) ??
        new AlarmCard(this.ctx, alarm, says, () => this.toggled.set(alarm.id, !one.root.open));
      one.draw(alarm, now);
      set(one.root, "open", this.toggled.get(alarm.id) ?? i < FEW);
      this.drawn.set(alarm.id, one);
    });
    arrange(
      this.list,
      alarms.length > 0
        ? [...this.drawn.values()].map((one) => one.root)
        : otherwise === null
          ? []
          : [h("section", { class: "card all-well" }, h("h2", {}, otherwise))],
    );
  }

  private drawTags(alarms: readonly Alarm[], chosen: string): void {
    const tags = tagsOf(alarms, chosen);
    const key = JSON.stringify([tags, chosen]);
    if (key === this.tags) return;
    this.tags = key;
    const counts = new Map(tags);
    options(
      this.tag,
      "All tags",
      [...counts.keys()],
      chosen,
      (tag) => `${tag} (${counts.get(tag)})`,
    );
  }

  private drawSilences(silences: readonly Silence[], writable: boolean): void {
    this.silences.hidden = silences.length === 0;
    const key = JSON.stringify([silences, writable]);
    if (key === this.silent) return;
    this.silent = key;
    fill(
      this.silences,
      h("h2", {}, "Silences"),
      h(
        "ul",
        {},
        ...silences.map((silence) =>
          h(
            "li",
            { class: "row" },
            h("strong", {}, silenced(silence)),
            h(
              "span",
              { class: "muted" },
              `until ${dateTime(silence.until)}, ${silence.by}${silence.text && `: ${silence.text}`}`,
            ),
            writable
              ? h(
                  "button",
                  { type: "button", class: "button", click: () => this.end(silence.id) },
                  "End",
                )
              : null,
          ),
        ),
      ),
    );
  }

  private end(id: string): void {
    const by = this.named();
    if (by === null) return;
    this.ctx.store
      .request("unsilence", { id, by })
      .catch((error) => this.ctx.toast(messageOf(error)));
  }

  /** Others read who has said it. */
  private named(): string | null {
    const name = this.name.value.trim();
    if (name !== "") return name;
    this.name.focus();
    this.ctx.toast("Say your name first: others read who has acknowledged it", "info");
    return null;
  }
}
