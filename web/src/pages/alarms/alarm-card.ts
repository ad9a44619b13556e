// SPDX-License-Identifier: Apache-2.0
// One alarm. Its numbers change while it stays: the elements stay too, and with them focus and what is typed.
import type { Ctx } from "../../ui/ctx";
import { children as fill, h, set, text as setText } from "../../lib/dom";
import { ago, dateTime, messageOf } from "../../lib/format";
import { groupLink, level, nodeLink } from "../../ui/parts";
import type { Alarm } from "../../model/protocol";
import { concerned } from "./model";

const HOUR_S = 3600;

export interface Says {
  /** Who says it; asked for where it is not known. */
  name(): string | null;
  writable(): boolean;
}

export class AlarmCard {
  readonly root: HTMLDetailsElement;
  private readonly severity = h("span", {});
  private readonly silenced = h("span", { class: "chip" }, "silenced");
  private readonly since = h("span", { class: "num" });
  private readonly title = h("span", { class: "finding-text", role: "heading", "aria-level": 2 });
  private readonly where = h("p", { class: "finding-where" });
  private readonly cause = h("p", { class: "remedy" });
  private readonly remedy = h("p", { class: "remedy" });
  private readonly history = h("dl", { class: "alarm-history" });
  private readonly comment = h("input", {
    class: "input alarm-comment",
    type: "text",
    maxlength: 300,
    placeholder: "A comment, or why it is acknowledged",
  });
  private readonly acknowledge: HTMLButtonElement;
  private readonly actions: HTMLElement;
  private said = "";

  constructor(
    private readonly ctx: Ctx,
    private alarm: Alarm,
    private readonly says: Says,
    toggled: () => void,
  ) {
    const button = (text: string, title: string, run: () => void) =>
      h("button", { type: "button", class: "button", title, click: run }, text);
    this.acknowledge = button("", "", () => this.toggleAcknowledged());
    this.actions = h(
      "div",
      { class: "row finding-actions alarm-actions" },
      this.comment,
      this.acknowledge,
      button("Comment", "Add this comment to the alarm", () => this.say()),
      button("Silence for an hour", "Nobody is told of this alarm for an hour", () =>
        this.silence(),
      ),
    );
    this.root = h(
      "details",
      {},
      h(
        "summary",
        { click: toggled },
        h(
          "span",
          { class: "finding-head" },
          this.severity,
          h("span", { class: "muted" }, alarm.alarm.replaceAll("_", " ")),
          this.silenced,
          h("span", { class: "finding-since muted" }, this.since),
        ),
        this.title,
      ),
      this.where,
      h(
        "div",
        { class: "finding-body" },
        h("div", {}, h("h3", {}, "Cause"), this.cause),
        h("div", {}, h("h3", {}, "What to do"), this.remedy),
      ),
      this.history,
      this.actions,
    );
  }

  /** `now` is Unix ms. */
  draw(alarm: Alarm, now: number): void {
    this.alarm = alarm;
    const over = alarm.cleared !== null && alarm.state === "cleared";
    setText(
      this.since,
      over ? `over ${ago(alarm.cleared!, now)}` : `began ${ago(alarm.since, now)}`,
    );
    this.actions.hidden = !this.says.writable();
    const said = JSON.stringify([alarm, over]);
    if (said === this.said) return;
    this.said = said;
    set(this.comment, "aria-label", `Comment on ${alarm.text}`);
    this.since.title = dateTime(over ? alarm.cleared! : alarm.since);
    this.root.className = `card finding alarm-${over ? "over" : alarm.severity}`;
    fill(this.severity, level(alarm.severity));
    this.silenced.hidden = !alarm.silenced || over;
    setText(this.title, alarm.text);
    fill(
      this.where,
      ...alarm.groups.map((group) => groupLink(this.ctx, group)),
      ...alarm.nodes.map((node) => nodeLink(this.ctx, node)),
      ...alarm.tags.map((tag) => h("span", { class: "muted" }, `#${tag}`)),
    );
    setText(this.cause, alarm.cause === "" ? "Not said." : alarm.cause);
    setText(this.remedy, alarm.remedy === "" ? "Not said." : alarm.remedy);
    this.drawHistory(alarm, over);
    this.acknowledge.hidden = over;
    const acked = alarm.state === "acknowledged";
    setText(this.acknowledge, acked ? "Take it back" : "Acknowledge");
    this.acknowledge.title = acked ? "It is raised again" : "Seen: somebody takes care of it";
  }

  private drawHistory(alarm: Alarm, over: boolean): void {
    const line = (t: number, who: string, text: string) => [
      h("dt", { class: "muted", title: dateTime(t) }, `${who}, ${dateTime(t)}`),
      h("dd", {}, text),
    ];
    const acked = alarm.acknowledged;
    fill(
      this.history,
      ...(alarm.count > 1 ? line(alarm.since, `raised for the ${alarm.count}. time`, "") : []),
      ...(acked ? line(acked.at, acked.by, `acknowledged${acked.text && `: ${acked.text}`}`) : []),
      ...alarm.comments.flatMap((one) => line(one.at, one.by, one.text)),
      ...(over ? line(alarm.cleared!, "over", alarm.why_cleared ?? "") : []),
    );
    this.history.hidden = this.history.childElementCount === 0;
  }

  private toggleAcknowledged(): void {
    const { id, state } = this.alarm;
    const text = this.comment.value.trim();
    this.do((by) =>
      state === "acknowledged"
        ? this.ctx.store.request("reopen", { id, by })
        : this.ctx.store.request("acknowledge", { id, by, text }),
    );
  }

  private say(): void {
    const text = this.comment.value.trim();
    if (text === "") return this.comment.focus();
    this.do((by) => this.ctx.store.request("comment", { id: this.alarm.id, by, text }));
  }

  private silence(): void {
    const { alarm } = this.alarm;
    const place = concerned(this.alarm);
    const text = this.comment.value.trim();
    this.do((by) =>
      this.ctx.store.request("silence", { alarm, ...place, for_s: HOUR_S, by, text }),
    );
  }

  private do(run: (by: string) => Promise<unknown>): void {
    const by = this.says.name();
    if (by === null) return;
    run(by).then(
      () => (this.comment.value = ""),
      (error) => this.ctx.toast(messageOf(error)),
    );
  }
}
