// SPDX-License-Identifier: Apache-2.0
// A profile in the list: what it is, how far it is, and what one can do with it.
import type { Ctx } from "../../ui/ctx";
import { children as fill, h, set, text as setText } from "../../lib/dom";
import { clock, dateTime } from "../../lib/format";
import { note } from "../../ui/parts";
import {
  costText,
  going,
  isRecording,
  kindTitle,
  over,
  placeText,
  type Profile,
  progress,
  stateText,
} from "./model";

export interface Deeds {
  begin(profile: Profile): void;
  stop(profile: Profile): void;
  remove(profile: Profile): void;
}

export class Line {
  readonly root: HTMLElement;
  private readonly says = h("p", { class: "muted profile-line-says" });
  private readonly bar = h("progress", { class: "profile-line-bar", max: 1, hidden: true });
  private drawn = "";

  constructor(
    private readonly ctx: Ctx,
    id: string,
    private readonly deeds: Deeds,
  ) {
    this.root = h("li", { class: "profile-line", "data-id": id });
  }

  draw(profile: Profile, may: boolean, now: number): void {
    const text = JSON.stringify([profile, may]);
    if (text !== this.drawn) {
      this.drawn = text;
      this.make(profile, may);
    }
    const at = progress(profile, now);
    this.bar.hidden = at === null;
    if (at !== null) set(this.bar, "value", at);
    const said = going(profile, now);
    setText(this.says, said);
    this.says.hidden = said === "";
  }

  private make(profile: Profile, may: boolean): void {
    const { id, state, who, at, stopped } = profile;
    const focused = document.activeElement?.closest(".profile-line") === this.root;
    set(this.root, "data-state", state);
    set(this.bar, "aria-label", `${kindTitle(profile.kind)} of ${placeText(profile)}`);
    fill(
      this.root,
      h(
        "div",
        { class: "profile-line-head" },
        h("span", { class: `profile-state profile-${state}` }, stateText(profile)),
        h("strong", {}, kindTitle(profile.kind)),
        h(
          "span",
          { class: "profile-line-place", title: profile.nodes.join("\n") },
          placeText(profile),
        ),
        h("span", { class: "muted" }, `by ${who}`),
        h("span", { class: "muted num", title: dateTime(at) }, clock(at)),
        over(profile) === "" ? null : h("span", { class: "muted num" }, over(profile)),
      ),
      this.bar,
      this.says,
      state === "ready" && !stopped ? this.cost(profile) : null,
      ...profile.problems.map(({ node, why }) => note(`${node}: ${why}`)),
      h("div", { class: "row profile-line-deeds" }, ...this.buttons(profile, may, id)),
    );
    if (focused && !this.root.contains(document.activeElement))
      this.root.querySelector<HTMLElement>("a, button")?.focus();
  }

  private buttons(profile: Profile, may: boolean, id: string): (HTMLElement | null)[] {
    const { state, kind, stopped, dear } = profile;
    const button = (label: string, testid: string, act: () => void, main = false) =>
      h(
        "button",
        {
          type: "button",
          class: main ? "button button-primary" : "button",
          "data-testid": testid,
          click: act,
        },
        label,
      );
    if (state === "ended")
      return [
        h(
          "a",
          {
            class: "button button-primary",
            "data-testid": "open",
            href: this.ctx.href(isRecording(kind) ? "profile" : "samples", null, { of: id }),
          },
          "Open",
        ),
        may ? button("Delete …", "delete", () => this.deeds.remove(profile)) : null,
      ];
    if (!may || state === "ending" || stopped)
      return state === "failed" && may
        ? [button("Delete …", "delete", () => this.deeds.remove(profile))]
        : [];
    if (state === "failed" || state === "lost")
      return [button("Delete …", "delete", () => this.deeds.remove(profile))];
    return [
      state === "ready"
        ? button(
            dear ? "Record all the same" : "Begin to record",
            "begin",
            () => this.deeds.begin(profile),
            true,
          )
        : null,
      button(state === "running" ? "Stop" : "Take back", "stop", () => this.deeds.stop(profile)),
    ];
  }

  private cost({ costs, dear, seconds, mib }: Profile): HTMLElement {
    return h(
      "div",
      { class: "profile-cost", role: "status" },
      h("p", {}, `Recording takes, for ${seconds} s and at most ${mib} MiB on each node:`),
      h(
        "ul",
        {},
        ...costs.map((cost) =>
          h("li", { class: "num" }, h("strong", {}, cost.node), ` ${costText(cost)}`),
        ),
      ),
      dear
        ? h(
            "p",
            { class: "problem" },
            "That is more than 500,000 events a second on a node, which slows it down much. Record fewer nodes or another kind, or a test system.",
          )
        : null,
    );
  }
}
