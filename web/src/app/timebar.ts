// SPDX-License-Identifier: Apache-2.0
// Time travel: pause, live, scrub, step, replay. The time chosen holds for every page, and is in the
// address as t.
import { ago, clock, dateTime, messageOf } from "../lib/format";
import { h, set, text as setText } from "../lib/dom";
import type { Change } from "../store/signals";
import type { Ctx } from "../ui/ctx";
import { icon } from "../ui/icons";
import { Recordings } from "./recordings";
import { Track } from "./track";
import { iconButton } from "../ui/parts";

const SPEEDS = [0.5, 1, 2, 5, 10, 60];
const ADDRESS_MS = 300;
const PAGE_MS = 10_000;

export class TimeBar {
  readonly element: HTMLElement;
  readonly dialog: HTMLElement;
  private readonly pause: HTMLButtonElement;
  private readonly live: HTMLButtonElement;
  private readonly scrub = h("input", {
    type: "range",
    class: "scrub",
    "data-testid": "scrub",
    "aria-label": "Time shown",
    min: "0",
    max: "1",
    step: "1",
    disabled: true,
  });
  private readonly speed: HTMLSelectElement;
  private readonly folder: HTMLButtonElement;
  private readonly label = h("output", { class: "time-label", "data-testid": "time" });
  private readonly since = h("span", { class: "time-since" });
  private readonly track: Track;
  private readonly recordings: Recordings;
  private addressTimer: ReturnType<typeof setTimeout> | undefined;
  /** The t last written to the address by this bar, or taken from it. */
  private address: string | undefined;
  private glyph = "";
  private readonly releaseKeys: () => void;

  constructor(private readonly ctx: Ctx) {
    const { store } = ctx;
    this.recordings = new Recordings(ctx, (running) => this.showRunning(running));
    this.dialog = this.recordings.element;
    this.track = new Track(ctx, this.scrub);
    this.pause = h("button", {
      class: "icon-button",
      "data-testid": "pause",
      onclick: () => this.toggle(),
    });
    this.live = h(
      "button",
      {
        class: "live-button",
        "data-testid": "live",
        title: "The newest (L)",
        onclick: () => void this.goLive(),
      },
      h("span", { class: "live-dot" }),
      "Live",
    );
    this.speed = h(
      "select",
      { class: "select speed", "aria-label": "Speed of replay", title: "Speed of replay" },
      ...SPEEDS.map((speed) => h("option", { value: speed, selected: speed === 1 }, `${speed}×`)),
    );
    this.speed.addEventListener("change", () =>
      store.time.mode === "playing"
        ? store.play(Number(this.speed.value))
        : store.setSpeed(Number(this.speed.value)),
    );
    this.scrub.addEventListener("input", () => store.seek(Number(this.scrub.value)));
    this.scrub.addEventListener("keydown", (event) => this.scrubKey(event));
    const step = (direction: 1 | -1, name: "back" | "forward", label: string) =>
      iconButton(name, label, () => store.step(direction), { class: "icon-button step" });
    this.folder = iconButton("folder", "Recordings", () => this.recordings.show(), {
      "data-testid": "recordings",
    });
    this.element = h(
      "footer",
      { class: "timebar", "aria-label": "Time" },
      h(
        "div",
        { class: "time-buttons" },
        step(-1, "back", "One frame back (,)"),
        this.pause,
        step(1, "forward", "One frame on (.)"),
        this.live,
      ),
      this.track.element,
      h("div", { class: "time-text" }, this.label, this.since),
      h("div", { class: "time-more" }, this.speed, this.folder),
    );
    this.releaseKeys = this.addKeys();
  }

  /** Takes the bar away, where there is no history. */
  leave(): void {
    this.element.hidden = true;
    this.releaseKeys();
  }

  update(change: Change): void {
    const { time, range, recording } = this.ctx.store;
    if (change.has("hello")) {
      this.arrived();
      this.recordings.refresh();
    }
    if (range !== null) {
      set(this.scrub, "min", Math.floor(range[0]));
      set(this.scrub, "max", Math.ceil(range[1]));
    }
    this.scrub.disabled = range === null || range[1] <= range[0];
    if (time.t !== null) {
      this.scrub.value = String(time.t);
      set(this.scrub, "aria-valuetext", dateTime(time.t));
    }
    const newest = this.ctx.store.live.frame?.t ?? range?.[1] ?? null;
    const old = time.t !== null && Date.now() - time.t > 20 * 3600_000;
    setText(this.label, time.t === null ? "–" : old ? dateTime(time.t) : clock(time.t));
    const connected = this.ctx.store.connection === "connected";
    setText(
      this.since,
      recording !== null
        ? "recorded"
        : time.t === null || newest === null
          ? ""
          : time.mode !== "live"
            ? ago(time.t, newest)
            : connected
              ? "live"
              : "the last",
    );
    this.showPause(
      time.mode === "paused" ? "play" : "pause",
      time.mode === "live"
        ? "Pause (Space)"
        : time.mode === "paused"
          ? "Go on from here (Space)"
          : "Stop (Space)",
    );
    const isLive = time.mode === "live" && recording === null;
    set(this.live, "aria-pressed", String(isLive && connected && time.t !== null));
    this.element.classList.toggle("past", !isLive && time.t !== null);
    this.speed.value = String(time.speed);
    if (change.has("hello")) this.track.reset();
    this.track.update();
    if (change.has("time")) this.writeAddress();
  }

  /** The address was changed, by a link or by hand. */
  routed(): void {
    const t = this.ctx.route.query["t"];
    if (t === this.address) return;
    this.address = t;
    if (t !== undefined && /^\d+$/.test(t)) this.seekWhenKnown(Number(t));
    else if (this.ctx.store.time.mode !== "live") this.ctx.store.goLive();
  }

  /** A deep link's time can only be asked for when the server has said which times there are. */
  private wanted: number | null = null;

  private seekWhenKnown(t: number): void {
    if (this.ctx.store.range === null) this.wanted = t;
    else this.ctx.store.seek(t);
  }

  private arrived(): void {
    if (this.wanted === null || this.ctx.store.range === null) return;
    const t = this.wanted;
    this.wanted = null;
    const [from] = this.ctx.store.range;
    if (t < from)
      this.ctx.toast(
        `The history does not reach back to ${dateTime(t)}: its oldest state is shown`,
        "info",
      );
    this.ctx.store.seek(t);
  }

  private writeAddress(): void {
    // Not started anew by each frame: these come faster than the timer ends.
    if (this.wanted !== null || this.addressTimer !== undefined) return;
    this.addressTimer = setTimeout(() => {
      this.addressTimer = undefined;
      const { time } = this.ctx.store;
      const t = time.mode === "live" || time.t === null ? undefined : String(Math.round(time.t));
      // While it plays, the address would change ten times a second.
      if (t === this.address || time.mode === "playing") return;
      this.address = t;
      this.ctx.setQuery({ t: t ?? "" });
    }, ADDRESS_MS);
  }

  /** Which recording is being written. */
  private showRunning(running: string | null): void {
    const title = running === null ? "Recordings" : `Recordings: ${running} is being written`;
    this.folder.classList.toggle("recording-on", running !== null);
    set(this.folder, "title", title);
    set(this.folder, "aria-label", title);
  }

  private showPause(name: "play" | "pause", label: string): void {
    if (this.glyph === label) return;
    this.glyph = label;
    this.pause.replaceChildren(icon(name));
    this.pause.title = label;
    set(this.pause, "aria-label", label.replace(/ \(.*/, ""));
  }

  private toggle(): void {
    const { store } = this.ctx;
    if (store.time.mode === "paused") store.play(Number(this.speed.value));
    else store.pause();
  }

  private async goLive(): Promise<void> {
    const { store } = this.ctx;
    try {
      if (store.recording === null) store.goLive();
      else await store.closeRecording();
    } catch (error) {
      this.ctx.toast(messageOf(error));
    }
  }

  private scrubKey(event: KeyboardEvent): void {
    const { store } = this.ctx;
    const by: Record<string, () => void> = {
      ArrowLeft: () => store.step(-1),
      ArrowDown: () => store.step(-1),
      ArrowRight: () => store.step(1),
      ArrowUp: () => store.step(1),
      PageUp: () => store.seek((store.time.t ?? 0) + PAGE_MS),
      PageDown: () => store.seek((store.time.t ?? 0) - PAGE_MS),
      // Of a recording, its end.
      End: () => store.goLive(),
    };
    const run = by[event.key];
    if (run === undefined) return;
    event.preventDefault();
    run();
  }

  private addKeys(): () => void {
    const { store, keys } = this.ctx;
    const section = "Time";
    return keys.add(
      { key: " ", text: "Pause, or go on from there", section, run: () => this.toggle() },
      { key: "l", text: "Live", section, run: () => void this.goLive() },
      { key: ",", text: "One frame back", section, run: () => store.step(-1) },
      { key: ".", text: "One frame on", section, run: () => store.step(1) },
      {
        key: "<",
        text: "Ten seconds back",
        section,
        run: () => store.seek((store.time.t ?? 0) - PAGE_MS),
      },
      {
        key: ">",
        text: "Ten seconds on",
        section,
        run: () => store.seek((store.time.t ?? 0) + PAGE_MS),
      },
      { key: "r", text: "Recordings", section, run: () => this.recordings.show() },
    );
  }
}
