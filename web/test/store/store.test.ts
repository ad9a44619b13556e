// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from "vitest";
import { FixtureCluster } from "../../src/dev/cluster";
import type { Hello, ServerMessage } from "../../src/model/protocol";
import { RequestError } from "../../src/store/requests";
import { Ring } from "../../src/lib/ring";
import { Signals } from "../../src/store/signals";
import { backoffMs, type Transport, type TransportEvents } from "../../src/store/socket";
import { Store } from "../../src/store/store";

/** A connection in the test's hands. */
class Line implements Transport {
  on!: TransportEvents;
  sent: Record<string, unknown>[] = [];
  up = true;
  open(on: TransportEvents) {
    this.on = on;
  }
  send(message: object) {
    if (this.up) this.sent.push(message as Record<string, unknown>);
    return this.up;
  }
  retry() {}
  close() {}
  say(message: ServerMessage) {
    this.on.message(message);
  }
  asked(op: string) {
    return this.sent.filter((message) => message["op"] === op);
  }
}

function started() {
  const line = new Line();
  const store = new Store(line, new Signals((run) => run()));
  store.start();
  line.on.opened();
  const cluster = new FixtureCluster({ nodes: 12, groups: 3, t: 1000 });
  line.say(cluster.hello(1000, [0, 1000]));
  line.say(cluster.topology);
  for (let t = 1000; t <= 5000; t += 1000) line.say(cluster.frame(t));
  return { line, store, cluster };
}

describe("store", () => {
  it("shows the newest frame while live", () => {
    const { store } = started();
    expect(store.connection).toBe("connected");
    expect(store.shown.frame?.t).toBe(5000);
    expect(store.shown.topology?.nodes.length).toBe(12);
    expect(store.range).toEqual([0, 5000]);
    expect(store.shown.frame!.value(0, "procs")).toBe(180);
    expect(store.shown.frame!.value(0, "no_such")).toBeNaN();
    store.stop();
  });

  it("stays where it was paused while frames come", () => {
    const { store, line, cluster } = started();
    store.pause();
    line.say(cluster.frame(6000));
    expect(store.shown.frame?.t).toBe(5000);
    expect(store.live.frame?.t).toBe(6000);
    store.step(-1);
    expect(store.shown.frame?.t).toBe(4000);
    store.step(1);
    store.step(1);
    expect(store.shown.frame?.t).toBe(6000);
    store.goLive();
    line.say(cluster.frame(7000));
    expect(store.shown.frame?.t).toBe(7000);
    store.stop();
  });

  it("asks the server for what is older than it has, newest wish last", async () => {
    const { store, line, cluster } = started();
    store.seek(500);
    store.seek(400);
    store.seek(300);
    const answer = (n: number) => {
      const { ref, t } = line.asked("at")[n] as { ref: number; t: number };
      line.say({
        type: "reply",
        ref,
        ok: true,
        result: { topology: cluster.topology, frame: cluster.frame(t), findings: [] },
      });
    };
    answer(0);
    await Promise.resolve()
      .then(() => undefined)
      .then(() => undefined)
      .then(() => undefined);
    expect(line.asked("at").map((request) => request["t"])).toEqual([500, 300]);
    answer(1);
    await new Promise((done) => setTimeout(done));
    expect(store.shown.frame?.t).toBe(300);
    store.stop();
  });

  it("watches again after a reconnect, and fails what was under way", async () => {
    const { store, line } = started();
    const release = store.watch("n1@10.0.0.1");
    store.watch("n1@10.0.0.1")();
    const failed = store.request("range", {}).catch((error: RequestError) => error.code);
    line.on.lost({ refused: false, retryMs: 1 });
    expect(await failed).toBe("disconnected");
    expect(store.connection).toBe("reconnecting");
    line.on.opened();
    expect(line.asked("watch").length).toBe(2);
    release();
    expect(line.asked("unwatch").length).toBe(1);
    store.stop();
  });

  it("adds up what was left out on the way, from the start of a source", () => {
    const { store, line, cluster } = started();
    line.say({ ...cluster.frame(6000), lost: { events_dropped: 2, trace_not_seen: 0 } });
    line.say({ ...cluster.frame(7000), lost: { events_dropped: 3 } });
    expect([...store.losses]).toEqual([["events_dropped", 5]]);
    line.say(cluster.hello(8000, [0, 8000]));
    expect(store.losses.size).toBe(0);
    store.stop();
  });

  it("keeps each event once, in order", () => {
    const { store, line } = started();
    const event = (id: number) => ({ id, t: id, kind: "k", level: "info" as const, text: "" });
    line.say({ type: "events", events: [event(3), event(1)] });
    line.say({ type: "events", events: [event(2), event(3)] });
    expect(store.events.map((one) => one.id)).toEqual([1, 2, 3]);
    store.stop();
  });
});

describe("a store whose source changes", () => {
  const settled = () => new Promise((done) => setTimeout(done));
  const reply = (line: Line, op: string, ok: boolean, result: unknown = null) => {
    const ref = line.asked(op).at(-1)!["ref"] as number;
    line.say({
      type: "reply",
      ref,
      ok,
      result,
      ...(ok ? {} : { error: { code: "not_found", message: "gone" } }),
    } as ServerMessage);
  };
  const hello = (
    cluster: FixtureCluster,
    t: number,
    range: [number, number],
    more: Partial<Hello> = {},
  ): Hello => ({ ...cluster.hello(t, range), ...more });
  const asRecording = { mode: "recording", recording: "r" };

  /** A recording of 100 to 300, opened by a person. */
  async function opened() {
    const { store, line, cluster } = started();
    const done = store.open("r");
    reply(line, "open", true);
    await done;
    line.say(hello(cluster, 9000, [100, 300], asRecording));
    line.say(cluster.topology);
    line.say(cluster.frame(300));
    return { store, line, cluster };
  }

  it("shows a recording from its beginning, not from that of the live history", async () => {
    const { store, line, cluster } = started();
    const done = store.open("r");
    reply(line, "open", true);
    await done;
    expect(line.asked("at")).toEqual([]);
    expect(store.recording).toBeNull();
    line.say(hello(cluster, 9000, [100, 300], asRecording));
    expect([store.recording, store.time.mode, store.time.t]).toEqual(["r", "paused", 100]);
    expect(line.asked("at").map((request) => request["t"])).toEqual([100]);
    reply(line, "at", true, {
      topology: cluster.topology,
      frame: cluster.frame(100),
      findings: [],
    });
    await settled();
    expect(store.shown.frame?.t).toBe(100);
    store.stop();
  });

  it("stays live where a recording cannot be opened", async () => {
    const { store, line } = started();
    const failed = store.open("r").catch((error: RequestError) => error.code);
    reply(line, "open", false);
    expect(await failed).toBe("not_found");
    line.on.lost({ refused: false, retryMs: 1 });
    line.on.opened();
    expect([store.recording, store.time.mode, line.asked("open").length]).toEqual([
      null,
      "live",
      1,
    ]);
    store.stop();
  });

  it("calls a server's own recording one, and asks for none", () => {
    const line = new Line();
    const store = new Store(line, new Signals((run) => run()));
    store.start();
    line.on.opened();
    const cluster = new FixtureCluster({ nodes: 12, groups: 3, t: 0 });
    line.say(hello(cluster, 9000, [100, 300], asRecording));
    line.say(cluster.topology);
    line.say(cluster.frame(300));
    expect([store.recording, store.time.mode, store.time.t]).toEqual(["r", "paused", 100]);
    store.goLive();
    expect([store.time.mode, store.time.t]).toEqual(["paused", 300]);
    line.on.lost({ refused: false, retryMs: 1 });
    line.on.opened();
    expect(line.asked("open")).toEqual([]);
    // Started again without one.
    line.say(hello(cluster, 9500, [9000, 9500]));
    expect([store.recording, store.time.mode]).toEqual([null, "live"]);
    store.stop();
  });

  it("goes back to the present with its hello", async () => {
    const { store, line, cluster } = await opened();
    const done = store.closeRecording();
    reply(line, "live", true);
    await done;
    line.say(hello(cluster, 9500, [0, 9500]));
    line.say(cluster.topology);
    line.say(cluster.frame(9500));
    expect([store.recording, store.time.mode, store.shown.frame?.t]).toEqual([null, "live", 9500]);
    store.stop();
  });

  it("opens a recording again after a reconnect, and stays at its time", async () => {
    const { store, line, cluster } = await opened();
    store.seek(200);
    line.on.lost({ refused: false, retryMs: 1 });
    line.on.opened();
    line.say(hello(cluster, 9900, [0, 9900]));
    expect([store.recording, store.time.t]).toEqual(["r", 200]);
    reply(line, "open", true);
    line.say(hello(cluster, 9900, [100, 300], asRecording));
    expect([store.recording, store.time.mode, store.time.t]).toEqual(["r", "paused", 200]);
    store.stop();
  });

  it("says so where it cannot be opened again, and is live", async () => {
    const { store, line, cluster } = await opened();
    const told: string[] = [];
    store.notify = (text) => told.push(text);
    line.on.lost({ refused: false, retryMs: 1 });
    line.on.opened();
    line.say(hello(cluster, 9900, [0, 9900]));
    line.say(cluster.topology);
    line.say(cluster.frame(9900));
    reply(line, "open", false);
    await settled();
    expect([store.recording, store.time.mode, store.shown.frame?.t]).toEqual([null, "live", 9900]);
    expect(told.length).toBe(1);
    store.stop();
  });

  it("mixes no two lives of a hub", () => {
    const { store, line, cluster } = started();
    const event = (id: number) => ({ id, t: id, kind: "k", level: "info" as const, text: "" });
    line.say(hello(cluster, 5000, [0, 5000], { life: 1 }));
    line.say(cluster.topology);
    line.say(cluster.frame(5000));
    line.say({ type: "events", events: [event(4999), event(5000)] });
    store.seek(4500);
    // The same one after a reconnect: the time stays.
    line.say(hello(cluster, 5000, [0, 5000], { life: 1 }));
    expect([store.time.mode, store.time.t, store.live.frame?.t]).toEqual(["paused", 4500, 5000]);
    line.say(hello(cluster, 9000, [8000, 9000], { life: 2 }));
    expect([store.time.mode, store.time.t, store.live.frame]).toEqual(["paused", 8000, null]);
    line.say({ type: "events", events: [event(1)] });
    expect(store.events.map((one) => one.id)).toEqual([1]);
    // What was asked of the life before is none of this one's.
    const asked = line.asked("events");
    line.say({
      type: "reply",
      ref: asked[0]!["ref"] as number,
      ok: true,
      result: { events: [event(17)] },
    });
    line.say(hello(cluster, 9500, null as never, { life: 3 }));
    expect([store.time.mode, store.range]).toEqual(["live", null]);
    store.stop();
  });

  it("takes no frame for a time that it is far from", () => {
    const { store, line, cluster } = started();
    for (let t = 60_000; t <= 62_000; t += 1000) line.say(cluster.frame(t));
    store.seek(6000);
    expect([store.shown.frame?.t, line.asked("at").length]).toEqual([5000, 0]);
    store.seek(30_000);
    expect(line.asked("at").map((request) => request["t"])).toEqual([30_000]);
    store.step(1);
    expect(store.time.t).toBe(31_000);
    store.seek(60_000);
    store.step(-1);
    expect(store.time.t).toBe(59_000);
    store.stop();
  });

  it("wants no frames in a hidden tab after a reconnect either", () => {
    const { store, line } = started();
    store.rest(true);
    line.on.lost({ refused: false, retryMs: 1 });
    line.on.opened();
    expect(line.asked("pause").length).toBe(2);
    store.rest(false);
    line.on.opened();
    expect(line.asked("pause").length).toBe(2);
    store.stop();
  });
});

describe("ring", () => {
  it("finds by time and forgets the oldest", () => {
    const ring = new Ring<{ t: number }>(4);
    for (let t = 0; t < 20; t++) ring.push({ t });
    expect(ring.length).toBeLessThanOrEqual(5);
    expect(ring.at(18.5)?.t).toBe(18);
    expect(ring.after(18)?.t).toBe(19);
    expect(ring.at(3)).toBeUndefined();
    ring.push({ t: 17 });
    expect(
      ring
        .all()
        .map((item) => item.t)
        .slice(-2),
    ).toEqual([17, 17]);
  });
});

describe("reconnecting", () => {
  it("waits longer each time, up to 8 s", () => {
    expect([0, 1, 2, 5, 30].map((n) => backoffMs(n, 0.5))).toEqual([250, 500, 1000, 8000, 8000]);
    expect(backoffMs(0, 0)).toBe(200);
  });
});
