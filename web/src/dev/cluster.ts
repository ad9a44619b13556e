// SPDX-License-Identifier: Apache-2.0
// A made-up cluster, for pages to be built on and tested with: overlapping groups in a ring, a
// gateway between neighbours, a few free nodes, traffic that drifts, nodes that die and come back.
import type {
  ClusterEvent,
  Detail,
  Finding,
  FrameMessage,
  Hello,
  NameRow,
  TopologyMessage,
  TopologyNode,
} from "../model/protocol";
import { random } from "./random";

export interface ClusterOptions {
  nodes?: number;
  groups?: number;
  edges?: number;
  free?: number;
  seed?: number;
  /** Nodes die and return, groups come and go. */
  changes?: boolean;
  t?: number;
}

interface Edge {
  from: number;
  to: number;
  base: number;
  phase: number;
  size: number;
}

const METRICS = [
  "run_queue",
  "util",
  "procs",
  "mem",
  "mq_max",
  "cpu_pct",
  "in_bytes_s",
  "out_bytes_s",
  "in_msgs_s",
  "out_msgs_s",
  "regs_s",
  "names",
];

const GROUP_NAMES = [
  "orders",
  "billing",
  "search",
  "sessions",
  "catalog",
  "chat",
  "media",
  "metrics",
  "mail",
  "auth",
  "cart",
  "stock",
  "maps",
  "feeds",
  "alerts",
  "jobs",
  "geo",
  "ads",
  "audit",
  "archive",
];

export class FixtureCluster {
  topology: TopologyMessage;
  events: ClusterEvent[] = [];
  findings: Finding[] = [];
  private readonly random: () => number;
  private readonly edges: Edge[] = [];
  private seq = 0;
  private nextEvent = 1;

  constructor(private readonly options: ClusterOptions = {}) {
    this.random = random(options.seed ?? 1);
    const t = options.t ?? Date.now();
    this.topology = this.makeTopology(t);
    this.makeEdges();
    if (this.topology.groups.length === 0) return;
    this.findings = this.makeFindings(t);
    for (let i = 0; i < 12; i++) this.makeEvent(t - (12 - i) * 9000);
  }

  hello(t: number, range: [number, number]): Hello {
    return {
      type: "hello",
      version: 1,
      mode: "synthetic",
      interval_ms: 1000,
      writable: false,
      source: "synthetic",
      cluster: "fixture",
      t,
      range,
      metrics: METRICS,
      units: {
        util: "ratio",
        mem: "bytes",
        cpu_pct: "%",
        in_bytes_s: "B/s",
        out_bytes_s: "B/s",
        in_msgs_s: "msg/s",
        out_msgs_s: "msg/s",
        regs_s: "1/s",
      },
    };
  }

  /** The frame at t; the same t gives the same traffic. */
  frame(t: number): FrameMessage {
    const up = new Set(
      this.topology.nodes.filter((node) => node.status === "up").map((node) => node.id),
    );
    const links: FrameMessage["links"] = [];
    const sums = new Map<number, [number, number, number, number]>();
    const sum = (id: number) => sums.get(id) ?? sums.set(id, [0, 0, 0, 0]).get(id)!;
    for (const edge of this.edges) {
      if (!up.has(edge.from) || !up.has(edge.to)) continue;
      const wave = Math.sin(t / 9000 + edge.phase) + 0.6 * Math.sin(t / 2300 + edge.phase * 3);
      const messages = edge.base * Math.exp(0.7 * wave);
      const bytes = messages * edge.size;
      links.push([edge.from, edge.to, messages, bytes]);
      const out = sum(edge.from);
      const into = sum(edge.to);
      out[0] += messages;
      out[1] += bytes;
      into[2] += messages;
      into[3] += bytes;
    }
    const nodes = [...up].map((id) => {
      const [outMessages, outBytes, inMessages, inBytes] = sum(id);
      const util = Math.min(
        1,
        0.04 + (outMessages + inMessages) / 60_000 + 0.05 * Math.abs(Math.sin(t / 4000 + id)),
      );
      return [
        id,
        util > 0.7 ? Math.round((util - 0.7) * 60) : 0,
        util,
        180 + id * 3,
        3.2e7 + id * 4e5,
        Math.round(util * 20),
        util * 400,
        inBytes,
        outBytes,
        inMessages,
        outMessages,
        Math.max(0, Math.sin(t / 5000 + id)) * 4,
        12 + (id % 30),
      ];
    });
    const total = links.reduce((all, link) => all + link[2], 0);
    return {
      type: "frame",
      seq: ++this.seq,
      t,
      span_ms: 1000,
      epoch: this.topology.epoch,
      nodes,
      links,
      kinds: {
        registration: [total * 0.01, total],
        replication: [total * 0.03, total * 6],
        routing: [total * 0.12, total * 40],
        probe: [40, 90_000],
      },
      lost: {},
    };
  }

  detail(name: string, t: number): Detail {
    const seed = [...name].reduce((sum, c) => sum + c.charCodeAt(0), 0);
    const wave = (i: number) => Math.abs(Math.sin(t / 3000 + i * 1.7 + seed));
    const scheduler = (i: number, type: string) => ({
      id: i,
      type,
      queue: Math.round(wave(i) ** 4 * 14),
      util: wave(i),
      socket: i >> 3,
      core: (i >> 1) & 3,
      thread: i & 1,
    });
    return {
      type: "detail",
      t,
      node: name,
      schedulers: [
        ...Array.from({ length: 16 }, (_, i) => ({ ...scheduler(i, "normal"), id: i + 1 })),
        ...Array.from({ length: 8 }, (_, i) => ({
          id: 17 + i,
          type: "dirty_cpu",
          util: wave(i) / 6,
          queue: 0,
        })),
        ...Array.from({ length: 8 }, (_, i) => ({
          id: 25 + i,
          type: "dirty_io",
          util: wave(i) / 9,
          queue: 0,
        })),
      ],
      queues: [...Array.from({ length: 16 }, (_, i) => Math.round(wave(i) ** 4 * 14)), 1, 0],
      memory: {
        total: 9.1e7,
        processes: 2.2e7,
        binary: 8e6,
        ets: 6.1e6,
        atom: 1.1e6,
        code: 2.4e7,
        system: 2.9e7,
      },
      top: Array.from({ length: 10 }, (_, i) => ({
        pid: `<0.${100 + i * 7}.0>`,
        name: i < 3 ? ["s_group", "net_kernel", "code_server"][i] : "",
        initial: "gen_server:init_it/6",
        queue: Math.round(wave(i) * 30),
        memory: 4e4 * (12 - i),
        reds_per_s: 9e5 * wave(i),
      })),
      migrations: [
        [1, 2, 14],
        [1, 4, 6],
        [3, 12, 9],
        [8, 15, 3],
      ],
      links: this.topology.nodes
        .slice(0, 6)
        .filter((node) => node.name !== name)
        .map((node, i) => ({
          node: node.name,
          type: "visible",
          out_msgs_s: 120 * i,
          out_bytes_s: 4e4 * i,
          in_msgs_s: 100 * i,
          in_bytes_s: 3e4 * i,
          pending: 0,
          reasons: ["group orders"],
          since_s: 400,
        })),
      kinds: { registration: [1.2, 400], replication: [8, 3200], routing: [40, 22_000] },
      traffic: [],
      problems: [],
      otp: "29",
      uptime_s: 4000,
      tracing: true,
      limits: {
        procs: 262144,
        proc_limit: 262144,
        ports: 12,
        port_limit: 65536,
        atoms: 21000,
        atom_limit: 1048576,
        ets: 60,
        ets_limit: 8192,
      },
    };
  }

  names(
    group: string,
    prefix: string,
    limit: number,
  ): { names: NameRow[]; total: number; more: boolean } {
    const members = this.topology.groups.find((one) => one.name === group)?.nodes ?? [];
    const all = Array.from({ length: 137 }, (_, i) => ({
      name: `{queue,${i},${i % 7}}`,
      pid: `<0.${200 + i}.0>`,
      node: this.topology.nodes[members[i % members.length] ?? 0].name,
      since: this.topology.t - i * 61_000,
    })).filter((row) => row.name.startsWith(prefix));
    return { names: all.slice(0, limit), total: all.length, more: all.length > limit };
  }

  /** Something happens: the events of it, and the topology is a new one. */
  change(t: number): ClusterEvent[] {
    const nodes = this.topology.nodes.map((node) => ({ ...node }));
    const down = nodes.find((node) => node.status === "down");
    const node = down ?? nodes[Math.floor(this.random() * nodes.length)];
    node.status = down ? "up" : "down";
    node.why = down ? null : "connection closed";
    this.topology = { ...this.topology, epoch: this.topology.epoch + 1, t, nodes };
    return [this.makeEvent(t, node.status === "up" ? "node_up" : "node_down", node)];
  }

  /** A group of that name over some nodes comes, or goes if it is there. */
  toggleGroup(name: string, t: number): ClusterEvent[] {
    const had = this.topology.groups.find((group) => group.name === name);
    const nodes = this.topology.nodes.map((node) => ({ ...node, groups: [...node.groups] }));
    let groups = [...this.topology.groups];
    if (had) {
      groups = groups.filter((group) => group !== had);
      for (const node of nodes) node.groups = node.groups.filter((id) => id !== had.id);
    } else {
      const id = Math.max(-1, ...groups.map((group) => group.id)) + 1;
      const members = nodes.filter((node) => node.groups.length < 2).slice(0, 4);
      for (const node of members) node.groups.push(id);
      groups.push({
        id,
        name,
        nodes: members.map((node) => node.id),
        coordinator: members[0].id,
        names: 0,
      });
    }
    this.topology = { ...this.topology, epoch: this.topology.epoch + 1, t, nodes, groups };
    return [this.makeEvent(t, had ? "group_deleted" : "group_created", undefined, name)];
  }

  private makeTopology(t: number): TopologyMessage {
    const count = this.options.nodes ?? 200;
    const groupCount = this.options.groups ?? 20;
    const free = this.options.free ?? Math.min(4, Math.floor(count / 20));
    const nodes: TopologyNode[] = Array.from({ length: count }, (_, id) => ({
      id,
      name: `n${id + 1}@10.0.0.${(id % 8) + 1}`,
      status: "up",
      groups: [],
      hidden: false,
      source: "probe",
      why: null,
      otp: id % 9 === 0 ? "28" : "29",
    }));
    const inGroups = nodes.slice(0, count - free);
    inGroups.forEach((node, i) => node.groups.push(Math.floor((i * groupCount) / inGroups.length)));
    // The first node of each group is a gateway to the group before, some also to one across.
    for (let group = 0; group < groupCount && groupCount > 1; group++) {
      const members = inGroups.filter((node) => node.groups[0] === group);
      if (group > 0 || groupCount > 2)
        members[0]?.groups.push((group + groupCount - 1) % groupCount);
      if (group % 5 === 0 && groupCount > 6)
        members[1]?.groups.push((group + Math.floor(groupCount / 2)) % groupCount);
    }
    if (nodes[count - 1] && count > 30)
      Object.assign(nodes[count - 1], { status: "unreachable", why: "no answer for 12 s" });
    return {
      type: "topology",
      epoch: 1,
      t,
      nodes,
      groups: Array.from({ length: groupCount }, (_, id) => {
        const members = nodes.filter((node) => node.groups.includes(id)).map((node) => node.id);
        return {
          id,
          name: GROUP_NAMES[id % GROUP_NAMES.length] + (id >= GROUP_NAMES.length ? `_${id}` : ""),
          nodes: members,
          coordinator: members[0] ?? null,
          names: 10 + id * 3,
        };
      }),
      monitors: [
        { node: "monitor1@10.0.0.9", status: "up", master: true, agents: 11 },
        { node: "monitor2@10.0.0.9", status: "up", master: false, agents: 10 },
      ],
    };
  }

  private makeEdges(): void {
    const { nodes, groups } = this.topology;
    if (groups.length === 0) return;
    const wanted = this.options.edges ?? nodes.length * 5;
    const seen = new Set<string>();
    const add = (from: number, to: number, base: number) => {
      const key = `${from}>${to}`;
      if (from === to || seen.has(key)) return;
      seen.add(key);
      this.edges.push({
        from,
        to,
        base,
        phase: this.random() * 6.28,
        size: 80 + this.random() * 900,
      });
    };
    const pick = <T>(list: readonly T[]): T => list[Math.floor(this.random() * list.length)];
    for (let tries = 0; seen.size < wanted && tries < wanted * 20; tries++) {
      const group = pick(groups);
      const bypass = this.random() < 0.012;
      const from = pick(group.nodes);
      const to = bypass ? pick(nodes).id : pick(group.nodes);
      const gateway = nodes[to].groups.length > 1 || nodes[from].groups.length > 1;
      add(from, to, Math.exp(this.random() * 6) * (gateway ? 6 : 2));
    }
  }

  private makeEvent(t: number, kind?: string, node?: TopologyNode, group?: string): ClusterEvent {
    const kinds = [
      ["name_registered", "info", "A name was registered"],
      ["long_gc", "notice", "Garbage collection took 140 ms"],
      ["busy_dist_port", "warning", "A process waited for a full distribution port"],
      ["node_slow", "error", "No answer from the node for 12 s"],
    ];
    const texts: Record<string, string> = {
      node_down: "The node went down",
      node_up: "The node is up",
      group_created: "The group was created",
      group_deleted: "The group was deleted",
    };
    const [name, level, text] = kind
      ? [kind, kind === "node_down" ? "error" : "notice", texts[kind] ?? kind]
      : kinds[Math.floor(this.random() * kinds.length)];
    const at = node ?? this.topology.nodes[Math.floor(this.random() * this.topology.nodes.length)];
    const event: ClusterEvent = {
      id: this.nextEvent++,
      t,
      kind: name,
      level: level as ClusterEvent["level"],
      text,
      details: {},
    };
    if (group !== undefined) event.group = group;
    else Object.assign(event, { node: at.name, group: this.topology.groups[at.groups[0]]?.name });
    this.events.push(event);
    return event;
  }

  private makeFindings(t: number): Finding[] {
    const { nodes, groups } = this.topology;
    const last = groups[groups.length - 1]?.name ?? "g";
    return [
      {
        id: "f1",
        kind: "gateway_bypass",
        severity: "warning",
        since: t - 200_000,
        t,
        where: { from: groups[0]?.name, to: last },
        text: `Nodes of ${groups[0]?.name} and ${last} send to each other directly, past the gateway`,
        evidence: [
          { label: "direct", value: 410, unit: "msg/s" },
          { label: "links", value: 3, unit: null },
        ],
        remedy: "Send through the gateway with sderl_route, or put the two nodes into one group.",
        saves: { links: 3, msgs_s: 0 },
      },
      {
        id: "f2",
        kind: "gateway_load",
        severity: "critical",
        since: t - 60_000,
        t,
        where: { node: nodes[0].name },
        text: "This gateway is close to saturation",
        evidence: [
          { label: "utilisation", value: 0.93, unit: "ratio" },
          { label: "run queue", value: 14, unit: null },
        ],
        remedy: "Make a second node a member of both groups.",
        saves: {},
      },
      {
        id: "f3",
        kind: "unneeded_link",
        severity: "info",
        since: t - 400_000,
        t,
        where: { from: nodes[1].name, to: nodes[2].name },
        text: "A link that nothing needs: no traffic for 6 min and no group in common",
        evidence: [{ label: "silent", value: 360, unit: "s" }],
        remedy: "Nothing breaks when it is closed: sderl_links:explain/1 says why it is there.",
        saves: { links: 1 },
      },
    ];
  }
}
