// SPDX-License-Identifier: Apache-2.0
// Profiles of a running cluster, as the server tells them, in words. Pure.
import { bytes, count, duration, lasting, share, sentence } from "../../lib/format";

export type Kind = "sampling" | "concurrency" | "messages" | "calls";
export type State = "preparing" | "ready" | "running" | "ending" | "ended" | "failed" | "lost";

export interface Cost {
  node: string;
  events_s: number;
  bytes_s: number;
  cores: number;
  full: boolean;
}

export interface Profile {
  id: string;
  kind: Kind;
  on: Record<string, unknown>;
  nodes: string[];
  who: string;
  at: number;
  seconds: number;
  mib: number;
  modules: string[];
  state: State;
  began: number | null;
  ended_at: number | null;
  costs: Cost[];
  /** Recording takes so many events a second that it has to be confirmed. */
  dear: boolean;
  problems: { node: string; why: string }[];
  why: string | null;
  stopped: boolean;
  bytes: number;
}

export interface Limits {
  sampling: { seconds: number; nodes: number };
  recording: { seconds: number; nodes: number; least_mib: number; most_mib: number };
}

export interface Profiles {
  /** The server's clock, which tells how far they are. */
  now: number;
  profiles: Profile[];
  bytes: number;
  most_bytes: number;
  limits: Limits;
  /** The kinds that one may begin. */
  may: Kind[];
}

export const KINDS: readonly (readonly [Kind, string, string])[] = [
  [
    "sampling",
    "Sampling",
    "Looks at processes up to 1,000 times a second and traces nothing: it may run in production. Shows which processes, functions and schedulers are busy, and where processes wait.",
  ],
  [
    "concurrency",
    "Concurrency",
    "Records when each process is scheduled: who runs, who could run, who takes the time. It slows the node down; what it costs is tried first.",
  ],
  [
    "messages",
    "Messages",
    "Records that, and each message: who waits for whom. It slows the node down more; what it costs is tried first.",
  ],
  [
    "calls",
    "Calls",
    "Records the calls of the functions of some modules: in which of them the time goes. What it costs is tried first.",
  ],
];

export const kindTitle = (kind: Kind): string =>
  KINDS.find(([one]) => one === kind)?.[1] ?? String(kind);

export const isRecording = (kind: Kind): boolean => kind !== "sampling";

/** Something of it is still to come. */
export const isActive = ({ state }: Profile): boolean =>
  state === "preparing" || state === "ready" || state === "running" || state === "ending";

/** What it is about. */
export function placeText({ on, nodes }: Profile): string {
  const [kind, name] = Object.entries(on)[0] ?? ["", ""];
  if (kind === "group" || kind === "family")
    return `${kind} ${String(name)} (${count(nodes.length)} ${nodes.length === 1 ? "node" : "nodes"})`;
  return nodes.length === 1 ? (nodes[0] ?? "") : `${count(nodes.length)} nodes`;
}

const STATES: Record<State, string> = {
  preparing: "getting ready",
  ready: "waits for you",
  running: "running",
  ending: "being analysed",
  ended: "done",
  failed: "failed",
  lost: "lost",
};

export function stateText({ state, stopped }: Profile): string {
  return stopped && (state === "ended" || state === "failed") ? "stopped" : STATES[state];
}

/** How far it is, from 0 to 1; null where that cannot be said. */
export function progress({ state, began, seconds }: Profile, now: number): number | null {
  if (state !== "running" || began === null) return null;
  return Math.min(1, Math.max(0, (now - began) / (1000 * seconds)));
}

/** What goes on, in a sentence; nothing where the state says it. */
export function going(profile: Profile, now: number): string {
  const { state, kind, seconds, stopped, why } = profile;
  const at = progress(profile, now);
  if (stopped && isActive(profile)) return "It is being ended.";
  if (state === "preparing")
    return isRecording(kind)
      ? "The nodes get ready, and a trial of a quarter of a second counts their events."
      : "The nodes get ready.";
  if (state === "running")
    return at === null
      ? "It begins."
      : `${duration(Math.ceil(seconds * (1 - at)))} of ${duration(seconds)} left.`;
  if (state === "ending") return "The events are fetched and analysed.";
  if (state === "failed") return sentence(why ?? "Nothing was profiled");
  if (state === "lost")
    return "The monitoring node, or the process that keeps its profiles, ended while it ran.";
  return "";
}

/** What a recording costs a node, as its trial has told. */
export const costText = ({ events_s, bytes_s, cores, full }: Cost): string =>
  `${full ? "at least " : ""}${count(Math.round(events_s))} events and ${bytes(bytes_s)} a second, ${share(cores)} of a core`;

/** Of one that is over: how long and how large. */
export function over(profile: Profile): string {
  const { state, began, ended_at, seconds, bytes: size } = profile;
  if (state !== "ended") return "";
  const took = began === null || ended_at === null ? seconds : (ended_at - began) / 1000;
  return `${lasting(1e9 * Math.min(seconds, took))}, ${bytes(size)}`;
}

/** The names of modules out of what a person wrote. */
export const modules = (text: string): string[] => [
  ...new Set(text.split(/[\s,;]+/).filter((name) => name !== "")),
];
