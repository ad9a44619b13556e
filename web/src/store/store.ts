// SPDX-License-Identifier: Apache-2.0
// The one place where what the server said is kept. Pages read `shown`: the cluster at the time
// that the person looks at, which is now unless the time bar says otherwise.
import { Frame } from "../model/frame";
import type {
  AlarmsMessage,
  AtResult,
  ClusterEvent,
  Detail,
  Finding,
  FrameMessage,
  Hello,
  Session,
  Op,
  Operations,
  ServerMessage,
  TopologyMessage,
} from "../model/protocol";
import { RequestError, Requests } from "./requests";
import { Ring } from "../lib/ring";
import { type Kind, type Listener, Signals } from "./signals";
import { TriageStore } from "./triage";
import { Topology } from "../model/topology";
import { forgetIds, meetGroups } from "../model/identity";
import type { Ended, Transport } from "./socket";
import { messageOf } from "../lib/format";

export type Connection = "connecting" | "connected" | "reconnecting" | "refused";
type TimeMode = "live" | "paused" | "playing";

export interface Shown {
  topology: Topology | null;
  frame: Frame | null;
  findings: readonly Finding[];
}

export interface Time {
  mode: TimeMode;
  /** The time shown, ms; null while nothing has come. */
  t: number | null;
  speed: number;
}

const FRAMES = 600;
const EVENTS = 2000;
const RANGE_MS = 30_000;
const PLAY_STEP_MS = 100;

export class Store {
  hello: Hello | null = null;
  /** Whose the token is, once the server has said so. */
  session: Session | null = null;
  connection: Connection = "connecting";
  /** What has become of a token that held, where the server refused it for that. */
  ended: Ended | null = null;
  /** The newest that came, whatever time is shown. */
  live: Shown = { topology: null, frame: null, findings: [] };
  shown: Shown = { topology: null, frame: null, findings: [] };
  time: Time = { mode: "live", t: null, speed: 1 };
  /** Of now, whatever time is shown; null where the server has none. */
  alarms: AlarmsMessage | null = null;
  range: [number, number] | null = null;
  /** Name of the recording shown instead of the live cluster. */
  recording: string | null = null;
  /** Frames that the server left out for this browser because it was slow. */
  missed = 0;
  missedEvents = 0;
  /** What was left out on the way here, by cause, since this source was opened. */
  readonly losses = new Map<string, number>();
  /** By id, oldest first. */
  events: readonly ClusterEvent[] = [];
  readonly frames = new Ring<Frame>(FRAMES);
  readonly details = new Map<string, Detail>();
  /** Called with what a person should know and no page asked for. */
  notify: (text: string) => void = () => undefined;
  readonly triage = new TriageStore(() => this.tell("findings"));

  private columns: ReadonlyMap<string, number> = new Map();
  private readonly topologies = new Ring<Topology>(200);
  private readonly findingsSeen = new Ring<{ t: number; findings: readonly Finding[] }>(200);
  private readonly watched = new Map<string, number>();
  private readonly signals: Signals;
  private readonly requests: Requests;
  /** The recording that the person chose: opened again after a reconnect. */
  private chosen: string | null = null;
  private hidden = false;
  private wanted: number | null = null;
  private fetching = false;
  private playing: ReturnType<typeof setInterval> | undefined;
  private rangeTimer: ReturnType<typeof setInterval> | undefined;

  constructor(
    private readonly transport: Transport,
    signals = new Signals(),
  ) {
    this.signals = signals;
    this.requests = new Requests((message) => transport.send(message));
  }

  start(): void {
    this.transport.open({
      opened: () => this.opened(),
      message: (message) => this.message(message),
      lost: ({ refused, ended }) => this.lost(refused, ended ?? null),
    });
    this.rangeTimer = setInterval(() => void this.askRange(), RANGE_MS);
  }

  stop(): void {
    clearInterval(this.rangeTimer);
    clearInterval(this.playing);
    this.transport.close();
  }

  /** Calls `listener` once per animation frame with what changed; gives the way to end it. */
  on(listener: Listener): () => void {
    return this.signals.on(listener);
  }

  tell(...kinds: Kind[]): void {
    this.signals.tell(...kinds);
  }

  request<O extends Op>(op: O, args: Operations[O][0]): Promise<Operations[O][1]> {
    return this.requests.ask(op, args);
  }

  retry(): void {
    this.transport.retry();
  }

  /** Details of a node come while at least one page watches it; call the result to end it. */
  watch(node: string): () => void {
    const count = this.watched.get(node) ?? 0;
    this.watched.set(node, count + 1);
    if (count === 0) this.quietly("watch", { node });
    let released = false;
    return () => {
      if (released) return;
      released = true;
      const left = (this.watched.get(node) ?? 1) - 1;
      if (left > 0) {
        this.watched.set(node, left);
        return;
      }
      this.watched.delete(node);
      this.details.delete(node);
      this.quietly("unwatch", { node });
    };
  }

  /** No frames while nobody looks (a hidden tab). */
  rest(hidden: boolean): void {
    this.hidden = hidden;
    this.quietly(hidden ? "pause" : "resume", {});
  }

  // Time ------------------------------------------------------------------

  goLive(): void {
    this.endPlaying();
    this.wanted = null;
    if (this.recording !== null) return this.seek(this.range?.[1] ?? Date.now());
    this.time = { ...this.time, mode: "live", t: this.live.frame?.t ?? this.time.t };
    // Nothing has come of a new source yet: the last picture stays until then.
    if (this.live.topology !== null) this.show(this.live);
    this.signals.tell("time");
  }

  pause(): void {
    this.endPlaying();
    const t = this.shown.frame?.t ?? this.time.t ?? Date.now();
    this.time = { ...this.time, mode: "paused", t };
    this.signals.tell("time");
  }

  /** Shows the cluster as it was at t (ms). */
  seek(t: number): void {
    this.endPlaying();
    this.time = { ...this.time, mode: "paused" };
    this.goTo(t);
  }

  /** One frame back (-1) or on (1). */
  step(direction: 1 | -1): void {
    const t = this.time.t ?? this.live.frame?.t;
    if (t === undefined || t === null) return;
    const known = direction > 0 ? this.frames.after(t) : this.frames.at(t - 1);
    this.seek(
      known !== undefined && this.isNear(known, t)
        ? known.t
        : t + direction * (this.hello?.interval_ms ?? 1000),
    );
  }

  /** Runs on from the time shown, `speed` times as fast as it was. */
  play(speed = this.time.speed): void {
    this.endPlaying();
    const from = this.time.t ?? this.range?.[0];
    if (from === undefined) return;
    const atEnd = this.range !== null && from >= this.range[1] - 1;
    this.time = {
      mode: "playing",
      t: atEnd && this.recording !== null ? this.range![0] : from,
      speed,
    };
    let last = performance.now();
    this.playing = setInterval(() => {
      const now = performance.now();
      const t = (this.time.t ?? from) + (now - last) * this.time.speed;
      last = now;
      if (this.range !== null && t >= this.range[1]) {
        if (this.recording === null) this.goLive();
        else this.seek(this.range[1]);
      } else {
        this.goTo(t);
      }
    }, PLAY_STEP_MS);
    this.signals.tell("time");
  }

  setSpeed(speed: number): void {
    this.time = { ...this.time, speed };
    this.signals.tell("time");
  }

  /** The answer comes before the recording's hello; what is shown changes with that (`greeted`). */
  open(recording: string): Promise<void> {
    return this.choose(recording, () => this.request("open", { recording }));
  }

  closeRecording(): Promise<void> {
    return this.choose(null, () => this.request("live", {}));
  }

  private async choose(recording: string | null, ask: () => Promise<unknown>): Promise<void> {
    const before = this.chosen;
    this.chosen = recording;
    try {
      await ask();
    } catch (error) {
      this.chosen = before;
      throw error;
    }
  }

  private goTo(t: number): void {
    const bounded = this.range === null ? t : Math.min(Math.max(t, this.range[0]), this.range[1]);
    this.time = { ...this.time, t: bounded };
    this.signals.tell("time");
    const frame = this.frames.at(bounded);
    if (this.recording === null && frame !== undefined && this.isNear(frame, bounded)) {
      this.wanted = null;
      this.show({
        frame,
        topology: this.topologies.at(frame.t) ?? this.topologies.first ?? this.live.topology,
        findings: this.findingsSeen.at(bounded)?.findings ?? this.live.findings,
      });
      return;
    }
    this.wanted = bounded;
    void this.fetchWanted();
  }

  /** Whether a frame may stand for a time: the frames kept here have gaps that the server's have not, as of a hidden tab. */
  private isNear(frame: Frame, t: number): boolean {
    return Math.abs(t - frame.t) <= 2 * Math.max(frame.spanMs, this.hello?.interval_ms ?? 1000);
  }

  /** One question at a time; while it is under way only the newest wish is remembered. */
  private async fetchWanted(): Promise<void> {
    if (this.fetching) return;
    this.fetching = true;
    try {
      while (this.wanted !== null) {
        const t = this.wanted;
        this.wanted = null;
        try {
          const result = await this.request("at", { t: Math.round(t) });
          if (this.time.mode !== "live" && this.wanted === null) this.showAt(result);
        } catch (error) {
          // "Nothing is known of that time" leaves the last picture; the bar says the time.
          if (!(error instanceof RequestError)) throw error;
        }
      }
    } finally {
      this.fetching = false;
    }
  }

  private showAt(result: AtResult): void {
    this.show({
      topology: this.topology(result.topology),
      frame: new Frame(result.frame, this.columns),
      findings: result.findings ?? [],
    });
  }

  private show(next: Shown): void {
    const before = this.shown;
    this.shown = { ...next };
    if (before.topology !== next.topology) this.signals.tell("topology");
    if (before.findings !== next.findings) this.signals.tell("findings");
    this.signals.tell("frame", "time");
  }

  private endPlaying(): void {
    clearInterval(this.playing);
    this.playing = undefined;
  }

  // Messages ---------------------------------------------------------------

  private opened(): void {
    this.connection = "connected";
    this.signals.tell("connection");
    for (const node of this.watched.keys()) this.quietly("watch", { node });
    if (this.hidden) this.quietly("pause", {});
    if (this.chosen !== null) void this.reopen(this.chosen);
  }

  private async reopen(recording: string): Promise<void> {
    try {
      await this.request("open", { recording });
    } catch (error) {
      // Without a connection it is tried again with the next one.
      if (
        this.chosen !== recording ||
        (error instanceof RequestError && error.code === "disconnected")
      )
        return;
      this.chosen = null;
      this.recording = null;
      this.goLive();
      this.signals.tell("hello", "range");
      this.notify(
        `The recording could not be opened again, so the live cluster is shown: ${messageOf(error)}`,
      );
    }
  }

  private lost(refused: boolean, ended: Ended | null): void {
    this.connection = refused ? "refused" : "reconnecting";
    this.ended = ended;
    this.requests.failAll("The connection was lost");
    this.signals.tell("connection");
  }

  private message(message: ServerMessage): void {
    switch (message.type) {
      case "session":
        this.session = message;
        break;
      case "hello":
        return this.greeted(message);
      case "topology":
        return this.gotTopology(message);
      case "frame":
        return this.gotFrame(message);
      case "events":
        return this.addEvents(message.events);
      case "findings": {
        const t = this.live.frame?.t ?? this.hello?.t ?? Date.now();
        this.findingsSeen.push({ t, findings: message.findings });
        return this.gotLive({ findings: message.findings });
      }
      case "alarms":
        this.alarms = message;
        return this.signals.tell("alarms");
      case "detail":
        if (this.watched.has(message.node)) this.details.set(message.node, message);
        return this.signals.tell("detail");
      case "missed":
        this.missed += message.frames;
        this.missedEvents += message.events;
        return this.signals.tell("connection");
      case "reply":
        return message.ok
          ? this.requests.answered(message.ref, true, message.result)
          : this.requests.answered(message.ref, false, null, message.error);
      case "error":
        return;
    }
  }

  /** A new source (connected, another recording, another hub): what was kept is of another time. */
  private greeted(given: Hello): void {
    const mayWrite = given.writable && this.session?.writable !== false;
    const hello = { ...given, writable: mayWrite };
    const recording = hello.recording ?? null;
    // Another history: not even the last picture belongs to it.
    if (hello.life !== this.hello?.life || recording !== (this.hello?.recording ?? null)) {
      this.live = { topology: null, frame: null, findings: [] };
      this.details.clear();
    }
    this.hello = hello;
    forgetIds();
    this.columns = new Map(hello.metrics.map((metric, i) => [metric, i]));
    this.range = hello.range === null ? null : [...hello.range];
    this.losses.clear();
    this.frames.clear();
    this.topologies.clear();
    this.findingsSeen.clear();
    this.events = [];
    this.quietly("events", { limit: 500 }, ({ events }) => {
      if (this.hello === hello) this.addEvents(events);
    });
    this.signals.tell("hello", "range", "events");
    // Connected again: the chosen recording follows, and the time in it stays.
    if (recording === null && this.chosen !== null) return;
    this.place(recording, hello.t);
  }

  /** The time shown in a new source. */
  private place(recording: string | null, now: number): void {
    if (recording !== this.recording) {
      this.recording = recording;
      if (recording === null) this.goLive();
      else this.seek(this.range?.[0] ?? now);
    } else if (this.time.mode === "paused") {
      if (this.range === null) this.goLive();
      else this.goTo(this.time.t ?? this.range[1]);
    }
  }

  private topology(message: AtResult["topology"]): Topology {
    const topology = new Topology(message);
    meetGroups(topology.groups);
    return topology;
  }

  private gotTopology(message: TopologyMessage): void {
    const topology = this.topology(message);
    this.topologies.push(topology);
    this.gotLive({ topology });
  }

  private gotFrame(message: FrameMessage): void {
    const frame = new Frame(message, this.columns);
    this.frames.push(frame);
    for (const [cause, n] of Object.entries(frame.lost))
      if (n > 0) this.losses.set(cause, (this.losses.get(cause) ?? 0) + n);
    this.range = [
      Math.min(this.range?.[0] ?? frame.t, frame.t),
      Math.max(this.range?.[1] ?? 0, frame.t),
    ];
    this.signals.tell("range");
    this.gotLive({ frame });
  }

  private gotLive(news: Partial<Shown>): void {
    this.live = { ...this.live, ...news };
    if (this.time.mode !== "live" && this.shown.topology !== null) return;
    this.time = { ...this.time, t: this.live.frame?.t ?? this.time.t };
    this.show(this.live);
  }

  private addEvents(events: readonly ClusterEvent[]): void {
    if (events.length === 0) return;
    const byId = new Map(this.events.map((event) => [event.id, event]));
    for (const event of events) byId.set(event.id, event);
    this.events = [...byId.values()].sort((a, b) => a.id - b.id).slice(-EVENTS);
    this.signals.tell("events");
  }

  private async askRange(): Promise<void> {
    this.quietly("range", {}, (result) => {
      const range = Array.isArray(result) ? result : result?.range;
      if (range) this.range = [range[0], Math.max(range[1], this.live.frame?.t ?? 0)];
      this.signals.tell("range");
    });
  }

  /** A request whose failure nobody needs to hear of: it is made again when connected again. */
  private quietly<O extends Op>(
    op: O,
    args: Operations[O][0],
    then?: (result: Operations[O][1]) => void,
  ): void {
    this.request(op, args).then(then ?? (() => undefined), () => undefined);
  }
}
