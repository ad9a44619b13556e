// SPDX-License-Identifier: Apache-2.0
// Groups as they were at a moment, by the operations on them that were recorded and by nothing else. Pure.
import type { Node, Operation } from "../answers";
import { lasting } from "../range";

export interface Group {
  readonly members: readonly string[];
  /** Members of before the recording, or beyond those that are kept, may be missing. */
  readonly mayHaveMore: boolean;
  /** The processes of names that were registered while it was recorded. */
  readonly names: ReadonlyMap<string, string>;
  /** Names of before the recording are missing. */
  readonly mayHaveNames: boolean;
}

export type Groups = ReadonlyMap<string, Group>;

/** Free names have no group. */
export const FREE = "undefined";

/** Without module and arity. */
export const verb = (operation: string): string =>
  operation.replace(/^s_group:/, "").replace(/\/\d+$/, "");

/** Names come and go more often than members. */
export const isOfNames = ({ operation }: Operation): boolean =>
  verb(operation).includes("register_name");

/** The next step from here that is one of these; the end where there is none. */
export function nextStep(
  step: number,
  by: 1 | -1,
  count: number,
  is: (step: number) => boolean,
): number {
  let at = step + by;
  while (at > 0 && at < count && !is(at)) at += by;
  return Math.max(0, Math.min(count, at));
}

/** When an operation took effect; where its end is not known, when it began. */
export const endOf = ({ at, took }: Operation): number => at + (took ?? 0);

/** In the order in which they took effect. */
export const inOrder = (operations: readonly Operation[]): Operation[] =>
  operations
    .map((one, i) => ({ one, i }))
    .sort((a, b) => endOf(a.one) - endOf(b.one) || a.i - b.i)
    .map(({ one }) => one);

/** The groups that nodes of a recording of several were in when it began. */
export function atBegin(nodes: readonly Node[]): Groups {
  const groups = new Map<string, Group>();
  for (const { node, groups: names } of nodes)
    for (const name of names) {
      const members = [...(groups.get(name)?.members ?? []), node].sort();
      groups.set(name, { ...PARTLY, members });
    }
  return groups;
}

const PARTLY: Group = {
  members: [],
  mayHaveMore: true,
  names: new Map<string, string>(),
  mayHaveNames: true,
};

interface Listed {
  nodes: string[];
  isAll: boolean;
}

const listed = (nodes: readonly (string | null)[] | null): Listed => ({
  nodes: (nodes ?? []).filter((node) => node !== null),
  isAll: nodes !== null && !nodes.includes(null),
});

/** What an operation makes of the groups; one that failed or did not end makes nothing of them. */
export function applied(groups: Groups, operation: Operation): Groups {
  const name = operation.got_group ?? operation.group;
  if (operation.ok !== true || name === null) return groups;
  const now = changed(groups.get(name), operation);
  if (now === groups.get(name)) return groups;
  const all = new Map(groups);
  if (now === undefined) all.delete(name);
  else all.set(name, now);
  return all;
}

/** None: there is no such group any more. */
function changed(before: Group | undefined, operation: Operation): Group | undefined {
  const { node } = operation;
  const [asked, got] = [listed(operation.nodes), listed(operation.got_nodes)];
  switch (verb(operation.operation)) {
    case "new_s_group":
      // Of no nodes none is made.
      return got.nodes.length === 0
        ? before
        : {
            members: sorted(got.nodes),
            mayHaveMore: !got.isAll,
            names: new Map<string, string>(),
            mayHaveNames: false,
          };
    case "delete_s_group":
      return undefined;
    case "add_nodes":
      if (got.nodes.length === 0 && got.isAll) return before;
      return {
        ...of(before, node),
        members: sorted([...of(before, node).members, ...got.nodes]),
        mayHaveMore: of(before, node).mayHaveMore || !got.isAll,
      };
    case "remove_nodes":
      return asked.nodes.length === 0 ? before : without(of(before, node), asked.nodes);
    case "enter":
      return {
        ...of(before, node),
        members: sorted([...got.nodes, node]),
        mayHaveMore: !got.isAll,
      };
    case "leave": {
      const left = without(of(before, node), [node]);
      return left.members.length === 0 && !left.mayHaveMore ? undefined : left;
    }
    case "recover_majority":
      return {
        ...of(before, node),
        members: sorted(asked.nodes),
        mayHaveMore: !asked.isAll,
      };
    case "register_name":
    case "register_name_external":
    case "re_register_name":
      return named(of(before, node), operation);
    case "unregister_name":
    case "unregister_name_external":
      return unnamed(of(before, node), operation);
    default:
      return before;
  }
}

/** The group, with the caller as a member: of a group from before the recording no more is known. */
function of(group: Group | undefined, caller: string): Group {
  if (group === undefined) return { ...PARTLY, members: [caller] };
  return group.members.includes(caller) || !group.mayHaveMore
    ? group
    : { ...group, members: sorted([...group.members, caller]) };
}

const sorted = (nodes: readonly string[]): string[] => [...new Set(nodes)].sort();

const without = (group: Group, nodes: readonly string[]): Group => ({
  ...group,
  members: group.members.filter((member) => !nodes.includes(member)),
});

function named(group: Group, { name, of_process }: Operation): Group {
  if (name === null) return group;
  return { ...group, names: new Map(group.names).set(name, of_process ?? "?") };
}

function unnamed(group: Group, { name }: Operation): Group {
  if (name === null || !group.names.has(name)) return group;
  const names = new Map(group.names);
  names.delete(name);
  return { ...group, names };
}

/** The groups are kept after each so many steps, from which going back starts. */
const KEPT_EACH = 64;

/** The groups after each of the operations. */
export class Replay {
  readonly steps: readonly Operation[];
  private readonly kept: Groups[];

  constructor(begin: Groups, operations: readonly Operation[]) {
    this.steps = inOrder(operations);
    this.kept = [begin];
  }

  /** After so many of them. */
  after(count: number): Groups {
    const n = Math.max(0, Math.min(this.steps.length, Math.floor(count)));
    let at = Math.min(Math.floor(n / KEPT_EACH), this.kept.length - 1);
    let groups = this.kept[at] as Groups;
    for (let i = at * KEPT_EACH; i < n; i += 1) {
      groups = applied(groups, this.steps[i] as Operation);
      if ((i + 1) % KEPT_EACH === 0) {
        at += 1;
        this.kept[at] ??= groups;
      }
    }
    return groups;
  }

  /** How many operations had taken effect by then. */
  countAt(moment: number): number {
    let [low, high] = [0, this.steps.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (endOf(this.steps[middle] as Operation) <= moment) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

export type Change = "stays" | "came" | "left";

export interface Shown {
  group: string;
  /** It has just come, or has just gone. */
  change: Change;
  members: { node: string; change: Change }[];
  mayHaveMore: boolean;
  names: number;
  /** How many more names than before. */
  moreNames: number;
  mayHaveNames: boolean;
}

/** The groups of a moment, with what the last step changed; by their names. */
export function shown(before: Groups, now: Groups): Shown[] {
  const names = [...new Set([...before.keys(), ...now.keys()])].sort();
  return names.map((group) => {
    const [was, is] = [before.get(group), now.get(group)];
    const one = (is ?? was) as Group;
    const [old, held] = [was?.members ?? [], is?.members ?? []];
    const hasCome = was === undefined;
    return {
      group,
      change: is === undefined ? "left" : hasCome ? "came" : "stays",
      members: sorted([...old, ...held]).map((node) => ({
        node,
        change: !held.includes(node) ? "left" : old.includes(node) ? "stays" : "came",
      })),
      mayHaveMore: one.mayHaveMore,
      names: is?.names.size ?? 0,
      moreNames: (is?.names.size ?? 0) - (was?.names.size ?? 0),
      mayHaveNames: one.mayHaveNames,
    };
  });
}

/** As one would write the call. */
export const callText = ({ operation, arguments: args }: Operation): string =>
  `${verb(operation)}(${args === "" ? "?" : args})`;

/** How long it took and what came of it. */
export function outcomeText({ took, ok, text }: Operation): string {
  if (took === null) return "did not end while it was recorded, so it is not known what it did";
  const gave =
    text === "" ? "its result is not known" : ok === true ? text : `nothing done: ${text}`;
  return `took ${lasting(took)}, ${gave}`;
}

/** An operation in a sentence. */
export const operationText = (one: Operation): string =>
  `${callText(one)} by ${one.by}, ${outcomeText(one)}`;
