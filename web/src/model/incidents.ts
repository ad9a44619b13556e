// SPDX-License-Identifier: Apache-2.0
// Events of one cause as one incident: a node that went down or came up, or a group that was created
// or deleted, with what followed from it on the other nodes; and the links of a node that came or
// went together, as those of a monitor or a tool do; and what several nodes tell of one silent gateway.
import type { ClusterEvent, Level } from "./protocol";

export interface Incident {
  /** The event that is shown for all of them: the monitor's own, where there is one. */
  head: ClusterEvent;
  /** All of it, the head too, oldest first. */
  events: readonly ClusterEvent[];
  /** The worst of them. */
  level: Level;
  cause: Cause["what"];
}

export interface Cause {
  what: "down" | "silent" | "up" | "linked" | "unlinked" | "created" | "deleted";
  /** The node's name, or the group's. */
  of: string;
}

interface Open {
  cause: Cause;
  events: ClusterEvent[];
  groups: ReadonlySet<string>;
}

/** Events further apart have other causes. */
const QUIET_MS = 10_000;
const LONGEST_MS = 60_000;
/** How many of the newest incidents an event may belong to. */
const MOST_OPEN = 64;

const NODE_CAUSES: Record<string, Cause["what"]> = {
  node_down: "down",
  node_unreachable: "down",
  node_up: "up",
};
const LINK_CAUSES: Record<string, Cause["what"]> = { link_up: "linked", link_down: "unlinked" };
/** What other nodes may report of a node before the monitor knows its state. */
const TOLD_FIRST: Partial<Record<Cause["what"], readonly Cause["what"][]>> = {
  up: ["linked"],
  down: ["unlinked", "silent"],
};
const GROUP_CAUSES: Record<string, Cause["what"]> = {
  group_created: "created",
  group_deleted: "deleted",
};

/** What members of a group tell when its members, or who is live of them, change. */
const CHURN = new Set([
  "group_created",
  "group_deleted",
  "group_left",
  "members_added",
  "members_removed",
  "member_live",
  "member_aside",
  "coordinator_changed",
  "component_split",
  "component_merged",
  "majority_lost",
  "majority_regained",
  "node_joined",
  "config_differs",
]);

const RANK: readonly Level[] = ["info", "notice", "warning", "error"];

/** The node at the other end of a link, where an event tells of one. */
function peerOf(event: ClusterEvent): string | null {
  const peer = event.details?.["peer"];
  return typeof peer === "string" ? peer : null;
}

/** The node that an event tells of, where it is one. */
function named(event: ClusterEvent): string | null {
  const nodes = event.details?.["nodes"];
  return Array.isArray(nodes) && typeof nodes[0] === "string" ? nodes[0] : null;
}

function causeOf(event: ClusterEvent): Cause | null {
  const peer = peerOf(event);
  const ofLink = LINK_CAUSES[event.kind];
  if (ofLink !== undefined && peer) return { what: ofLink, of: peer };
  const node = peer ?? event.node;
  const ofNode = NODE_CAUSES[event.kind];
  if (ofNode !== undefined && node) return { what: ofNode, of: node };
  const gateway = event.kind === "gateway_silent" ? named(event) : null;
  if (gateway !== null) return { what: "silent", of: gateway };
  const ofGroup = GROUP_CAUSES[event.kind];
  return ofGroup !== undefined && event.group ? { what: ofGroup, of: event.group } : null;
}

/** The monitor's own word on a node is better than that of one at the other end of a link. */
function isFirstHand(event: ClusterEvent): boolean {
  const cause = causeOf(event);
  return peerOf(event) === null && cause !== null && cause.what !== "silent";
}

function names(event: ClusterEvent, text: () => string, node: string): boolean {
  if (event.node === node || peerOf(event) === node) return true;
  return isNamed(text(), node);
}

function isNamed(text: string, node: string): boolean {
  // n1@h is not named by n1@host.
  for (let at = text.indexOf(node); at >= 0; at = text.indexOf(node, at + 1)) {
    const [before, after] = [text[at - 1] ?? " ", text[at + node.length] ?? " "];
    if (!/[\w@-]/.test(before) && !/[\w@-]|\.\w/.test(after + (text[at + node.length + 1] ?? "")))
      return true;
  }
  return false;
}

/** What may follow minutes after a node began to hang: links to it end, groups go on without it. */
const isLate = ({ kind }: ClusterEvent): boolean =>
  CHURN.has(kind) || LINK_CAUSES[kind] === "unlinked";

/** Two reports of one cause: an early one of other nodes, or a gateway's silence, which may also come later. */
const areOne = (own: Cause, cause: Cause): boolean =>
  isToldFirst(cause, own) || (own.what === "silent" && cause.what === "down");

const isToldFirst = (first: Cause, then: Cause): boolean =>
  TOLD_FIRST[then.what]?.includes(first.what) ?? false;

function belongs(
  event: ClusterEvent,
  text: () => string,
  { cause, events, groups }: Open,
): boolean {
  const last = events[events.length - 1];
  if (event.t - last.t > QUIET_MS || event.t - events[0].t > LONGEST_MS)
    return cause.what === "down" && isLate(event) && names(event, text, cause.of);
  const own = causeOf(event);
  const ofLinks = (one: Cause) => one.what === "linked" || one.what === "unlinked";
  if (own !== null && (!ofLinks(own) || ofLinks(cause)))
    return own.of === cause.of && (own.what === cause.what || areOne(own, cause));
  if (ofLinks(cause)) return false;
  const { group } = event;
  if (cause.what === "created" || cause.what === "deleted")
    return group === cause.of && CHURN.has(event.kind);
  return (
    names(event, text, cause.of) || (group != null && groups.has(group) && CHURN.has(event.kind))
  );
}

/** Events that stand alone, and incidents in the place of those that do not; in the order of their last. */
export function incidents(
  events: readonly ClusterEvent[],
  groupsOf: (node: string) => readonly string[] = () => [],
): (ClusterEvent | Incident)[] {
  const all: Open[] = [];
  let open: Open[] = [];
  const alone: ClusterEvent[] = [];
  for (const event of events) {
    let words = "";
    const text = () => (words ||= `${event.text} ${JSON.stringify(event.details ?? {})}`);
    const found = open.findLast((one) => belongs(event, text, one));
    const cause = causeOf(event);
    if (found !== undefined) {
      found.events.push(event);
      if (cause !== null && isToldFirst(found.cause, cause)) {
        found.cause = cause;
        found.groups = new Set(groupsOf(cause.of));
      }
    } else if (cause === null) alone.push(event);
    else {
      const one = { cause, events: [event], groups: new Set(groupsOf(cause.of)) };
      all.push(one);
      open = [...open, one].slice(-MOST_OPEN);
    }
    // The node is back: later events do not follow from its being down.
    if (cause?.what === "up")
      open = open.filter(({ cause: { what, of } }) => what !== "down" || of !== cause.of);
  }
  const merged: (ClusterEvent | Incident)[] = [...alone];
  for (const { cause, events: those } of all)
    merged.push(those.length === 1 ? those[0] : incident(cause, those));
  return merged.sort((a, b) => lastOf(a).id - lastOf(b).id);
}

export const isIncident = (one: ClusterEvent | Incident): one is Incident => "head" in one;

const lastOf = (one: ClusterEvent | Incident): ClusterEvent =>
  isIncident(one) ? one.events[one.events.length - 1] : one;

function incident({ what }: Cause, events: readonly ClusterEvent[]): Incident {
  const level = events.reduce((worst, event) => Math.max(worst, RANK.indexOf(event.level)), 0);
  return {
    head: events.find(isFirstHand) ?? events[0],
    events,
    level: RANK[level],
    cause: what,
  };
}
