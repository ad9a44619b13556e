// SPDX-License-Identifier: Apache-2.0
// What goes over the socket, as types. docs/dashboard.md describes it in words.

export type Level = "info" | "notice" | "warning" | "error";
export type Severity = "info" | "warning" | "critical";
type NodeStatus = "up" | "down" | "unreachable";

export interface Hello {
  type: "hello";
  version: number;
  mode: string;
  interval_ms: number;
  writable: boolean;
  source: string;
  cluster: string | null;
  /** The name of the recording that this is, in place of a cluster. */
  recording?: string;
  /** Changes when the hub begins anew, with another history. Recordings have none. */
  life?: number | null;
  t: number;
  range: [number, number] | null;
  /** Whether frames are kept for long; recordings and older servers do not say. */
  archive?: boolean;
  /** A profiler's recording is shown, and no cluster. */
  profile?: boolean;
  /** It is a recording of samples. */
  samples?: boolean;
  /** Profiles of the cluster can be made and shown. */
  profiling?: boolean;
  metrics: string[];
  units: Record<string, string>;
}

export interface TopologyNode {
  id: number;
  name: string;
  status: NodeStatus;
  groups: number[];
  hidden: boolean;
  source: string | null;
  why: string | null;
  otp: string | null;
  /** Whether s_groups run there, with or without a probe; older servers and recordings do not say. */
  library?: boolean | null;
}

export interface TopologyGroup {
  id: number;
  name: string;
  nodes: number[];
  coordinator: number | null;
  names: number | null;
}

export interface Monitor {
  node: string;
  status: string;
  master: boolean;
  agents: number;
}

export interface TopologyMessage {
  type: "topology";
  epoch: number;
  t: number;
  nodes: TopologyNode[];
  groups: TopologyGroup[];
  monitors: Monitor[];
}

/** [msg/s, bytes/s] */
export type Rate = [number, number];

export interface FrameMessage {
  type: "frame";
  seq: number;
  t: number;
  span_ms: number;
  epoch: number;
  nodes: (number | null)[][];
  links: [number, number, number, number][];
  kinds: Record<string, Rate>;
  /** [group's id, its numbers] */
  groups?: [number, Record<string, number>][];
  lost: Record<string, number>;
}

export interface ClusterEvent {
  id: number;
  t: number;
  kind: string;
  level: Level;
  text: string;
  node?: string | null;
  group?: string | null;
  details?: Record<string, unknown>;
}

interface Where {
  node?: string;
  group?: string;
  from?: string;
  to?: string;
}

interface Evidence {
  label: string;
  value: number | string;
  unit?: string | null;
}

export interface Finding {
  id: string;
  kind: string;
  severity: Severity;
  since: number;
  t: number;
  where: Where;
  text: string;
  evidence: Evidence[];
  remedy: string;
  saves?: Record<string, number>;
}

export type AlarmState = "raised" | "acknowledged" | "cleared";
export type AlarmSeverity = "minor" | "major";

export interface Said {
  by: string;
  at: number;
  text: string;
}

export interface Alarm {
  id: string;
  alarm: string;
  state: AlarmState;
  severity: AlarmSeverity;
  worst: AlarmSeverity;
  since: number;
  cleared: number | null;
  why_cleared: string | null;
  count: number;
  seq: number;
  silenced: boolean;
  /** What it is of: a node, a group, a family, or both ends of a link. */
  place: Concerned & { from?: string; to?: string };
  nodes: string[];
  groups: string[];
  text: string;
  cause: string;
  remedy: string;
  tags: string[];
  acknowledged: Said | null;
  comments: (Said & { id: string })[];
}

/** What a silence may be for. */
export type Concerned = { node?: string; group?: string; family?: string };

export interface Silence extends Said {
  id: string;
  match: Record<string, string>;
  until: number;
}

/** The first of all alarms, those that are raised before others, and the silences that hold. */
export interface AlarmsMessage {
  type: "alarms";
  alarms: Alarm[];
  total: number;
  silences: Silence[];
}

export interface SchedulerDetail {
  id: number;
  type: "normal" | "dirty_cpu" | "dirty_io" | string;
  queue?: number | null;
  util?: number | null;
  socket?: number | null;
  core?: number | null;
  thread?: number | null;
}

export interface ProcessRow {
  pid: string;
  name: string;
  initial: string;
  queue: number;
  memory: number;
  reds_per_s: number;
}

export interface LinkDetail {
  node: string;
  type: string;
  out_msgs_s?: number;
  out_bytes_s?: number;
  in_msgs_s?: number;
  in_bytes_s?: number;
  pending?: number;
  reasons?: string[];
  since_s?: number;
  [more: string]: unknown;
}

export interface Detail {
  type: "detail";
  t: number;
  node: string;
  schedulers?: SchedulerDetail[];
  queues?: number[];
  memory?: Record<string, number>;
  top?: ProcessRow[];
  migrations?: [number, number, number][];
  links?: LinkDetail[];
  kinds?: Record<string, Rate>;
  traffic?: { from: string; to: string; kind: string; msgs: number; bytes: number }[];
  problems?: string[];
  limits?: Record<string, number>;
  otp?: string;
  uptime_s?: number;
  tracing?: boolean;
  [more: string]: unknown;
}

export interface Series {
  t: number[];
  columns: Record<string, (number | null)[]>;
}

/** from and to for links and edges, node and groups for gateways, group for groups. */
export interface TrafficRow {
  from?: string;
  to?: string;
  node?: string;
  groups?: string[];
  group?: string;
  msgs_s: number;
  /** Null for routed messages, whose bytes are not counted. */
  bytes_s?: number | null;
  msgs: number;
  bytes?: number | null;
  /** Of a gateway with a probe: routed messages that it passed on. */
  forwarded_s?: number | null;
  p50: number;
  p95: number;
  max: number;
}

export interface NameRow {
  name: string;
  pid: string;
  node: string;
  since?: number | null;
}

export type LogLevel =
  "emergency" | "alert" | "critical" | "error" | "warning" | "notice" | "info" | "debug";

/** An event of a node's log. Where `lost` is not 0, so many were left out there. */
export interface LogEvent {
  id: number;
  t: number;
  node_t: number;
  level: LogLevel;
  node: string;
  groups: string[];
  mfa: string;
  pid: string;
  text: string;
  lost: number;
}

/** What the monitoring node has of the logs. */
export interface LogInfo {
  events: Record<string, number>;
  lost: { reason: string; level: string; events: number }[];
  place: "memory" | "files";
  problem: string | null;
  range: [number, number] | null;
  last: number;
  bytes: number;
}

/** Newest first; `next` is `before` of the next page. */
export interface LogPage {
  events: LogEvent[];
  next: number | null;
  log: LogInfo;
}

export interface Recording {
  name: string;
  bytes: number;
  /** When it was last written to. */
  modified: number;
}

/** A number of nodes: one of the monitoring, or of the application itself. */
export interface Metric {
  name: string;
  unit: string;
  about: string;
  kind: "number" | "counter" | "sum" | "last" | "gauge";
  /** How the nodes of a place are put together. */
  total: "sum" | "mean" | "max";
  /** What tells its series apart. */
  tags: string[];
  /** By which views choose, such as dev and op. */
  for: string[];
}

export type Place = { kind: "cluster" } | { kind: "family" | "group" | "node"; name: string };

export interface FrontChart {
  metric: string;
  place: Place;
}

/** A page of charts that somebody has put together; `rev` grows each time that it is saved. */
export interface Front {
  name: string;
  window: string;
  charts: FrontChart[];
  rev: number;
}

export type SeriesOf =
  | { kind: "node"; node: string; metrics: string[] }
  | { kind: "link"; from: string; to: string }
  | { kind: "group"; group: string }
  | { kind: "edge"; from: string; to: string }
  | { kind: "gateway"; node: string }
  | { kind: "routed"; from: string; to: string }
  | { kind: "over"; place: Place; metric: string }
  | { kind: "total" };

/** The arguments and the result of each request. */
export interface Operations {
  watch: [{ node: string }, unknown];
  unwatch: [{ node: string }, unknown];
  pause: [Record<never, never>, unknown];
  resume: [Record<never, never>, unknown];
  range: [Record<never, never>, { range: [number, number] } | [number, number] | null];
  at: [{ t: number }, AtResult];
  series: [{ of: SeriesOf; from: number; to: number; points: number }, Series];
  traffic: [
    { by: "link" | "edge" | "gateway" | "group" | "routed"; window_s: number; t?: number },
    { rows: TrafficRow[] },
  ];
  events: [
    {
      before?: number;
      limit: number;
      from?: number;
      to?: number;
      node?: string;
      group?: string;
      kinds?: string[];
    },
    { events: ClusterEvent[] },
  ];
  log: [
    {
      limit: number;
      before?: number;
      after?: number;
      from?: number;
      to?: number;
      text?: string;
      node?: string;
      group?: string;
      level?: string;
      module?: string;
    },
    LogPage,
  ];
  names: [
    { group: string; prefix?: string; limit: number },
    { names: NameRow[]; total: number; more: boolean },
  ];
  lookup: [{ group: string; name: string }, unknown];
  process: [{ node: string; pid: string }, Record<string, unknown>];
  trace: [
    { node: string; on: boolean; sample?: number; max_per_s?: number; confirm?: boolean },
    { cost?: string; [more: string]: unknown },
  ];
  acknowledge: [{ id: string; by: string; text: string }, unknown];
  reopen: [{ id: string; by: string }, unknown];
  comment: [{ id: string; by: string; text: string }, unknown];
  silence: [
    Concerned & { alarm?: string; for_s: number; by: string; text: string },
    { id: string },
  ];
  unsilence: [{ id: string; by: string }, unknown];
  metrics: [Record<never, never>, { metrics: Metric[] }];
  fronts: [Record<never, never>, { pages: Front[]; kept: boolean; problem: string | null }];
  save_front: [{ page: Front }, Front];
  delete_front: [{ name: string; rev: number }, null];
  operations: [Record<never, never>, Operation];
  recordings: [Record<never, never>, { recordings: Recording[] } | Recording[]];
  open: [{ recording: string }, unknown];
  live: [Record<never, never>, unknown];
  record: [{ on: boolean }, unknown];
}
export type Op = keyof Operations;

/** What a service of operations says of its cluster. */
export interface Operation {
  status: OperationStatus;
  /** The newest first. */
  revisions: Revision[];
  /** What is left until all is as the newest revision says. */
  steps: string[];
}

export interface OperationStatus {
  cluster: string;
  revision: number;
  state: "steady" | "working" | "paused" | "failed" | "destroyed";
  instances: Instance[];
  hosts: { id: string; state: string; why: string | null; instances: number }[];
  groups: { name: string; members: number; running: number; state: string }[];
  problems: string[];
  information: string[];
  waiting: string[];
  doing: string[];
  progress: { done: number; total: number } | null;
}

export interface Instance {
  /** Its family and a number. */
  id: string;
  node: string | null;
  host: string | null;
  release: string | null;
  state: string;
  why: string | null;
}

export interface Revision {
  revision: number;
  /** As RFC 3339 has it. */
  at: string;
  who: string;
  what: string;
  result: string;
  /** Services of earlier versions do not say. */
  why?: string | null;
}

/** An entry of the record of operations. */
export interface Done {
  number: number;
  /** As RFC 3339 has it. */
  at: string;
  who: string;
  kind: "request" | "step" | "note";
  what: string;
  result: string;
  why: string | null;
}

export interface AtResult {
  topology: Omit<TopologyMessage, "type">;
  frame: Omit<FrameMessage, "type">;
  findings?: Finding[];
}

export interface ReplyError {
  code: "bad_request" | "not_found" | "forbidden" | "unavailable" | "too_large" | string;
  message: string;
}

/** Whose the token is; comes before hello. */
export interface Session {
  type: "session";
  name: string;
  role: "viewer" | "operator" | "admin";
  /** Whether this token may change anything here. */
  writable: boolean;
  expires: number | null;
}

export type ServerMessage =
  | Hello
  | Session
  | TopologyMessage
  | FrameMessage
  | { type: "events"; events: ClusterEvent[] }
  | { type: "findings"; findings: Finding[] }
  | AlarmsMessage
  | Detail
  | { type: "missed"; frames: number; events: number }
  | { type: "reply"; ref: number; ok: true; result: unknown }
  | { type: "reply"; ref: number; ok: false; error: ReplyError }
  | { type: "error"; error?: ReplyError; message?: string };
