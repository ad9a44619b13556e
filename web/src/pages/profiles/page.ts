// SPDX-License-Identifier: Apache-2.0
// Profiles of the running cluster: begins to sample or record nodes, follows that, opens what came of it.
import type { Ctx, MountedPage, Page } from "../../ui/ctx";
import type { Change } from "../../store/signals";
import { arrange, h, prose, set, text as setText } from "../../lib/dom";
import { bytes, messageOf } from "../../lib/format";
import { card, type Choice, choice, dialog, emptyState, note, searchKey } from "../../ui/parts";
import { PlaceSelect } from "../../ui/place-select";
import { saidName } from "../../ui/said-name";
import { getJson, postJson, remove } from "../../store/http";
import { where } from "../../model/places";
import { Line } from "./line";
import {
  isActive,
  isRecording,
  type Kind,
  KINDS,
  kindTitle,
  modules,
  placeText,
  type Profile,
  type Profiles,
  stateText,
} from "./model";
import "../../styles/data.css";
import "./profiles.css";

const ACTIVE_MS = 1000;
const IDLE_MS = 5000;

class ProfilesPage implements MountedPage {
  private readonly place: PlaceSelect;
  private readonly kinds: Choice<Kind>;
  private readonly about = h("p", { class: "muted profiles-about" });
  private readonly seconds = numberField("seconds", 1, 600, 10);
  private readonly mib = numberField("mib", 16, 256, 32);
  private readonly modules = h("input", {
    class: "input",
    name: "modules",
    "data-testid": "modules",
    autocomplete: "off",
    spellcheck: "false",
    placeholder: "my_server, my_worker",
  });
  private readonly sizeField: HTMLElement;
  private readonly modulesField: HTMLElement;
  private readonly go = h("button", {
    type: "submit",
    class: "button button-primary",
    "data-testid": "profile",
  });
  private readonly denied = h("div", { hidden: true });
  private readonly problem = h("p", { class: "problem", role: "alert", hidden: true });
  private readonly kept = h("p", { class: "muted num" });
  private readonly list = h("ul", { class: "profiles-list", "data-testid": "profiles" });
  private readonly lines = new Map<string, Line>();
  private readonly release: () => void;
  private shown: Profiles | null = null;
  private limited = "";
  private busy = false;
  private turn = 0;
  /** The problem that is shown is that the list could not be read. */
  private isUnanswered = false;
  private ahead = 0;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private ended = false;

  constructor(
    private readonly root: HTMLElement,
    private readonly ctx: Ctx,
  ) {
    this.place = new PlaceSelect(ctx);
    this.kinds = choice<Kind>(
      "What to profile",
      KINDS.map(([kind, title]) => [kind, title] as const),
      "sampling",
      (kind) => ctx.setQuery({ kind: kind === "sampling" ? "" : kind }),
    );
    this.sizeField = field("MiB of events on each node, at most", this.mib);
    this.modulesField = field("Modules whose functions are told", this.modules);
    const form = h(
      "form",
      { class: "profiles-form", "aria-label": "Profile" },
      h(
        "div",
        { class: "profiles-fields" },
        field("Seconds", this.seconds),
        this.sizeField,
        this.modulesField,
      ),
      h("div", { class: "row" }, this.go),
      this.denied,
      this.problem,
    );
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      void this.begin();
    });
    root.append(
      card(
        "Profile nodes",
        {
          hint: "Shows what their processes do. All that is begun here is in the audit log, and ends with this monitor.",
          testid: "profile-form",
        },
        h("div", { class: "row profiles-choice" }, this.place.root, this.kinds.root),
        this.about,
        form,
      ),
      card("Profiles", { testid: "profile-list" }, this.kept, this.list),
    );
    set(this.place.root, "data-search", true);
    this.release = searchKey(ctx, root, "Choose where");
    this.routed();
    void this.ask();
  }

  update(change: Change): void {
    if (change.has("topology")) this.place.draw();
    if (change.has("hello")) void this.ask();
    if (change.has("route")) this.routed();
  }

  destroy(): void {
    this.ended = true;
    clearTimeout(this.timer);
    this.release();
    this.root.replaceChildren();
  }

  private get kind(): Kind {
    return KINDS.find(([one]) => one === this.ctx.route.query["kind"])?.[0] ?? "sampling";
  }

  private routed(): void {
    const { kind } = this;
    this.place.draw();
    this.kinds.choose(kind);
    setText(this.about, KINDS.find(([one]) => one === kind)?.[2] ?? "");
    setText(this.go, isRecording(kind) ? "Try what it costs" : "Begin to sample");
    this.sizeField.hidden = !isRecording(kind);
    // A value that nobody sees must not hold up the form.
    this.mib.disabled = !isRecording(kind);
    this.modulesField.hidden = kind !== "calls";
    this.limit();
  }

  /** What the server takes, and what one may. */
  private limit(): void {
    if (this.shown === null) return;
    const { kind } = this;
    const { limits, may } = this.shown;
    const most = (isRecording(kind) ? limits.recording : limits.sampling).seconds;
    const isWritable = this.ctx.store.hello?.writable === true;
    const key = `${kind}/${most}/${may.join()}/${isWritable}`;
    if (key === this.limited) return;
    this.limited = key;
    set(this.seconds, "max", most);
    if (Number(this.seconds.value) > most) this.seconds.value = String(most);
    const mayBegin = may.includes(kind);
    this.allow();
    this.denied.hidden = mayBegin;
    const needs = isRecording(kind) ? "admin" : "operator";
    this.denied.replaceChildren(
      note(
        ...prose(
          isWritable
            ? `This needs the role ${needs}.`
            : `This dashboard is read-only: one that was started with \`--write\` lets those with the role ${needs} begin it.`,
        ),
      ),
    );
  }

  /** One at a time, and what one may. */
  private allow(): void {
    this.go.disabled = this.busy || this.shown?.may.includes(this.kind) === false;
  }

  private async begin(): Promise<void> {
    if (this.busy) return;
    const { kind } = this;
    const on = where(this.place.value);
    if (on === null) {
      this.place.focus();
      return this.fail("Choose where: a node, a group or a family.");
    }
    const named = modules(this.modules.value);
    if (kind === "calls" && named.length === 0) {
      this.modules.focus();
      return this.fail("Name the modules whose functions are to be told.");
    }
    this.busy = true;
    this.allow();
    this.problem.hidden = true;
    try {
      await postJson(
        "api/v1/profiles",
        {
          on,
          kind,
          seconds: Number(this.seconds.value),
          ...(isRecording(kind) ? { mib: Number(this.mib.value) } : {}),
          ...(kind === "calls" ? { modules: named } : {}),
        },
        saidName(),
      );
      await this.ask();
      this.list.scrollIntoView({ block: "nearest" });
    } catch (error) {
      this.fail(error);
    } finally {
      this.busy = false;
      this.allow();
    }
  }

  private fail(error: unknown, isUnanswered = false): void {
    this.isUnanswered = isUnanswered;
    setText(this.problem, messageOf(error));
    this.problem.hidden = false;
  }

  private async ask(): Promise<void> {
    clearTimeout(this.timer);
    if (this.ended) return;
    if (this.ctx.store.hello?.profiling === false) return this.nothing();
    const mine = (this.turn += 1);
    if (!document.hidden) {
      try {
        const shown = await getJson<Profiles>("api/v1/profiles");
        if (this.ended || mine !== this.turn) return;
        if (this.isUnanswered) this.problem.hidden = true;
        this.isUnanswered = false;
        this.ahead = shown.now - Date.now();
        this.shown = shown;
        this.draw(shown);
      } catch (error) {
        if (this.ended || mine !== this.turn) return;
        // The banner says that there is no connection.
        if (this.ctx.store.connection === "connected") this.fail(error, true);
      }
    }
    const active = this.shown?.profiles.some(isActive) === true;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => void this.ask(), active ? ACTIVE_MS : IDLE_MS);
  }

  private nothing(): void {
    this.root.replaceChildren(
      emptyState(
        "No profiles can be made here",
        "`bin/sderl mon --seed NODE` profiles the nodes of a running cluster, where it has a folder for what it keeps.",
      ),
    );
  }

  private draw({ profiles, bytes: size, most_bytes, may }: Profiles): void {
    const now = Date.now() + this.ahead;
    const there = new Set(profiles.map(({ id }) => id));
    for (const id of this.lines.keys()) if (!there.has(id)) this.lines.delete(id);
    for (const profile of profiles) {
      const line = this.lines.get(profile.id) ?? this.line(profile.id);
      const before = line.root.dataset["state"];
      line.draw(profile, may.includes(profile.kind), now);
      if (before !== undefined && before !== profile.state)
        this.ctx.announce(
          `${kindTitle(profile.kind)} of ${placeText(profile)}: ${stateText(profile)}`,
        );
    }
    arrange(
      this.list,
      profiles.length === 0
        ? [h("li", { class: "muted" }, "None yet.")]
        : profiles.flatMap(({ id }) => this.lines.get(id)?.root ?? []),
    );
    setText(this.kept, `${bytes(size)} of at most ${bytes(most_bytes)} are kept.`);
    this.limit();
  }

  private line(id: string): Line {
    const line = new Line(this.ctx, id, {
      begin: (profile) => void this.post(profile, "begin", { force: profile.dear }),
      stop: (profile) => void this.post(profile, "stop", {}),
      remove: (profile) => this.askToDelete(profile),
    });
    this.lines.set(id, line);
    return line;
  }

  private async post({ id }: Profile, what: string, body: unknown): Promise<void> {
    try {
      await postJson(`api/v1/profiles/${encodeURIComponent(id)}/${what}`, body, saidName());
    } catch (error) {
      this.ctx.toast(messageOf(error));
    }
    await this.ask();
  }

  private askToDelete(profile: Profile): void {
    const element = dialog(
      "Delete this profile?",
      h(
        "p",
        {},
        `${kindTitle(profile.kind)} of ${placeText(profile)}. What was seen is gone then for everybody.`,
      ),
      h(
        "div",
        { class: "dialog-actions" },
        h("button", { class: "button", type: "button", click: () => element.close() }, "Keep it"),
        h(
          "button",
          {
            class: "button button-primary",
            type: "button",
            "data-testid": "really-delete",
            click: () => {
              element.close();
              void this.deleted(profile);
            },
          },
          "Delete it",
        ),
      ),
    );
  }

  private async deleted({ id }: Profile): Promise<void> {
    try {
      await remove(`api/v1/profiles/${encodeURIComponent(id)}`, saidName());
    } catch (error) {
      this.ctx.toast(messageOf(error));
    }
    await this.ask();
  }
}

function numberField(name: string, min: number, max: number, value: number): HTMLInputElement {
  const input = h("input", {
    class: "input num",
    type: "number",
    name,
    min,
    max,
    step: 1,
    required: true,
    "data-testid": name,
  });
  input.value = String(value);
  return input;
}

const field = (label: string, input: HTMLElement): HTMLElement =>
  h("label", { class: "profiles-field" }, h("span", {}, label), input);

export const page: Page = {
  mount: (root, ctx) => new ProfilesPage(root, ctx),
};
