// SPDX-License-Identifier: Apache-2.0
// A server inside the page: `npm run fixture`. The address says what is made up:
//   ?nodes=200&groups=20&edges=1000&interval=1000&changes=1&seed=1&state=connecting|reconnecting|refused|empty
import type { Front, ServerMessage, TopologyMessage } from "../model/protocol";
import type { Transport, TransportEvents } from "../store/socket";
import { FixtureCluster } from "./cluster";
import { logPage } from "./log";
import { METRICS, seriesOf } from "./metrics";

const HISTORY_MS = 600_000;

export class FixtureTransport implements Transport {
  readonly cluster: FixtureCluster;
  private on: TransportEvents | null = null;
  private paused = false;
  private readonly interval: number;
  private readonly fields: URLSearchParams;
  private readonly started = Date.now();
  private readonly past: TopologyMessage[] = [];
  private readonly watched = new Set<string>();
  private readonly fronts = new Map<string, Front>();
  private timers: ReturnType<typeof setInterval>[] = [];

  constructor(search: string) {
    this.fields = new URLSearchParams(search);
    const field = (name: string, otherwise: number) => Number(this.fields.get(name) ?? otherwise);
    this.interval = field("interval", 1000);
    const empty = this.fields.get("state") === "empty";
    this.cluster = new FixtureCluster({
      nodes: empty ? 0 : field("nodes", 200),
      groups: empty ? 0 : field("groups", 20),
      edges: field("edges", field("nodes", 200) * 5),
      seed: field("seed", 1),
      t: this.started,
    });
    this.past.push(this.cluster.topology);
  }

  open(on: TransportEvents): void {
    this.on = on;
    const state = this.fields.get("state");
    if (state === "connecting") return;
    if (state === "refused")
      return void setTimeout(() => on.lost({ refused: true, retryMs: 1000 }), 20);
    setTimeout(() => {
      on.opened();
      this.greet();
      this.timers.push(setInterval(() => this.tick(), this.interval));
      if (this.fields.get("changes")) this.timers.push(setInterval(() => this.happen(), 4000));
      if (state === "reconnecting")
        setTimeout(() => (this.close(), on.lost({ refused: false, retryMs: 1e6 })), 300);
    }, 30);
  }

  send(message: object): boolean {
    const request = message as { ref: number; op: string } & Record<string, unknown>;
    setTimeout(() => {
      const result = this.answer(request);
      this.say(
        result instanceof Error
          ? {
              type: "reply",
              ref: request.ref,
              ok: false,
              error: { code: "not_found", message: result.message },
            }
          : { type: "reply", ref: request.ref, ok: true, result },
      );
    }, 5);
    return true;
  }

  retry(): void {}

  close(): void {
    this.timers.forEach(clearInterval);
    this.timers = [];
  }

  /** For the console and tests: a node changes its state now. */
  happen(): void {
    this.tell(this.cluster.change(Date.now()));
  }

  toggleGroup(name: string): void {
    this.tell(this.cluster.toggleGroup(name, Date.now()));
  }

  private tell(events: ReturnType<FixtureCluster["change"]>): void {
    this.past.push(this.cluster.topology);
    this.say(this.cluster.topology);
    this.say({ type: "events", events });
  }

  private greet(): void {
    const t = Date.now();
    this.say(this.cluster.hello(t, [this.started - HISTORY_MS, t]));
    this.say(this.cluster.topology);
    this.say({ type: "findings", findings: this.cluster.findings });
    this.say(this.cluster.frame(t));
  }

  private tick(): void {
    const t = Date.now();
    if (!this.paused) this.say(this.cluster.frame(t));
    for (const node of this.watched) this.say(this.cluster.detail(node, t));
  }

  private say(message: ServerMessage): void {
    this.on?.message(message);
  }

  private answer(request: { op: string } & Record<string, unknown>): unknown {
    const now = Date.now();
    const range: [number, number] = [this.started - HISTORY_MS, now];
    switch (request.op) {
      case "watch":
        this.watched.add(String(request["node"]));
        this.say(this.cluster.detail(String(request["node"]), now));
        return {};
      case "unwatch":
        this.watched.delete(String(request["node"]));
        return {};
      case "pause":
      case "resume":
        this.paused = request.op === "pause";
        return {};
      case "range":
        return { range };
      case "at": {
        const t = Number(request["t"]);
        const topology = this.past.findLast((one) => one.t <= t) ?? this.past[0];
        return { topology, frame: this.cluster.frame(t), findings: this.cluster.findings };
      }
      case "series": {
        const [from, to, points] = ["from", "to", "points"].map((key) => Number(request[key]));
        const of = request["of"] as { kind: string; metrics?: string[]; metric?: string };
        const t = Array.from(
          { length: Math.min(points, 300) },
          (_, i, all = Math.min(points, 300)) => from + ((to - from) * i) / Math.max(1, all - 1),
        );
        const metrics =
          of.kind === "node"
            ? (of.metrics ?? [])
            : of.kind === "over"
              ? seriesOf(of.metric ?? "")
              : of.kind === "group"
                ? ["regs_s", "failed_s", "names", "in_msgs_s"]
                : ["msgs_s", "bytes_s"];
        const height: Record<string, number> = {
          util: 1,
          mem: 9e7,
          sessions: 800,
          procs: 300,
          bytes_s: 4e6,
          msgs_s: 9e3,
          in_bytes_s: 4e6,
          out_bytes_s: 4e6,
        };
        return {
          t,
          columns: Object.fromEntries(
            metrics.map((metric, m) => [
              metric,
              t.map(
                (at) =>
                  (height[metric] ?? 20) *
                  (0.5 + 0.3 * Math.sin(at / 20_000 + m) + 0.15 * Math.sin(at / 3100 + m * 2)),
              ),
            ]),
          ),
        };
      }
      case "metrics":
        return { metrics: METRICS };
      case "fronts":
        return { pages: [...this.fronts.values()], kept: false, problem: null };
      case "save_front": {
        const page = request["page"] as Front;
        const saved = { ...page, rev: page.rev + 1 };
        this.fronts.set(page.name, saved);
        return saved;
      }
      case "delete_front":
        this.fronts.delete(String(request["name"]));
        return null;
      case "traffic":
        return { rows: this.trafficRows(String(request["by"]), now) };
      case "events": {
        const before = Number(request["before"] ?? Infinity);
        return {
          events: this.cluster.events
            .filter((event) => event.id < before)
            .slice(-Number(request["limit"])),
        };
      }
      case "log":
        return logPage(request, this.cluster.topology.nodes, this.started);
      case "names":
        return this.cluster.names(
          String(request["group"]),
          String(request["prefix"] ?? ""),
          Number(request["limit"]),
        );
      case "lookup":
        return (
          this.cluster.names(String(request["group"]), String(request["name"]), 1).names[0] ??
          new Error("No such name in this group: look at the spelling")
        );
      case "process":
        return {
          pid: request["pid"],
          initial: "gen_server:init_it/6",
          current: "gen_server:loop/7",
          queue: 0,
          memory: 34_000,
          links: 2,
        };
      case "trace":
        return request["confirm"]
          ? {}
          : { cost: "About 3 % of one core at 1,000 messages a second" };
      case "recordings":
        return {
          recordings: [
            { name: "2026-01-07T09-15.sderl", bytes: 4_200_000, modified: now - 3_600_000 },
          ],
        };
      case "open":
      case "live":
        this.greet();
        return {};
      default:
        return new Error(`No such request: ${request.op}`);
    }
  }

  private trafficRows(by: string, now: number): unknown[] {
    const { nodes, groups } = this.cluster.topology;
    const row = (from: string, to: string | undefined, messages: number, bytes: number) => ({
      from,
      to,
      msgs_s: messages,
      bytes_s: bytes,
      msgs: messages * 60,
      bytes: bytes * 60,
      p50: messages * 0.9,
      p95: messages * 1.8,
      max: messages * 2.2,
    });
    if (by === "link")
      return this.cluster
        .frame(now)
        .links.map(([from, to, messages, bytes]) =>
          row(nodes[from].name, nodes[to].name, messages, bytes),
        );
    if (by === "gateway")
      return nodes
        .filter((node) => node.groups.length > 1)
        .map((node, i) => ({
          ...row(node.name, undefined, 900 + i * 31, 4e5 + i * 9e3),
          forwarded_s: i % 3 === 2 ? undefined : 300 + i * 11,
        }));
    if (by === "group")
      return groups.map((group, i) => row(group.name, undefined, 3000 - i * 90, 1e6 - i * 2e4));
    return groups.flatMap((from, i) =>
      groups
        .filter((_, k) => k === i || (k + 1) % groups.length === i)
        .map((to) => row(from.name, to.name, 500 + i * 17, 2e5)),
    );
  }
}
