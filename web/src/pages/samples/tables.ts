// SPDX-License-Identifier: Apache-2.0
// The tables of a page of samples.
import { h, styled } from "../../lib/dom";
import { count, number, percent, share } from "../../lib/format";
import { type Column, type Table, table } from "../../lib/table";
import type { Kind, NodeRow, Place, Share, Shares } from "./answers";
import { schedulerText, shareText, stateText } from "./model";
import { measure } from "../../lib/columns";

const HEIGHT = "32rem";

/** A share as a bar, its interval as a line across the bar's end. */
export function shareBar(of: Share): HTMLElement {
  const per = (value: number) => `${(100 * Math.min(1, Math.max(0, value))).toFixed(2)}%`;
  const fill = styled(
    h("i", { class: "samples-fill", "aria-hidden": "true" }),
    "width",
    per(of.share),
  );
  const range = h("i", { class: "samples-range", "aria-hidden": "true" });
  styled(range, "left", per(of.low));
  styled(range, "width", per(of.high - of.low));
  return h(
    "span",
    { class: "samples-share", title: `95 % interval: ${shareText(of)}` },
    h("span", { class: "samples-bar" }, fill, range),
    h("span", { class: "samples-text" }, shareText(of)),
  );
}

const shares = <R>(key: string, label: string, hint: string, of: (row: R) => Share): Column<R> => ({
  key,
  label,
  hint,
  numeric: true,
  width: "16rem",
  narrow: "9.2rem",
  value: (row) => of(row).share,
  show: (row) => shareBar(of(row)),
});

const amount = <R>(
  key: string,
  label: string,
  hint: string,
  of: (row: R) => number,
  show: (value: number) => string = number,
  wide = true,
) => measure(key, label, of, show, { hint, width: "6.2rem", narrow: "4.6rem", wide });

const words = <R>(key: string, label: string, of: (row: R) => string, wide = false): Column<R> => ({
  key,
  label,
  wide,
  value: of,
  show: (row) => h("span", { class: "lines", title: of(row) }, of(row)),
});

export const kindsTable = (chosen: (kind: string) => void): Table<Kind> =>
  table<Kind>({
    caption: "Kinds of processes",
    id: ({ group }) => group,
    order: { key: "share", direction: "descending" },
    filter: "",
    maxHeight: HEIGHT,
    empty: "No process was looked at in this part.",
    onChoose: ({ group }) => chosen(group),
    columns: [
      words("kind", "Kind", ({ group }) => group),
      shares<Kind>(
        "share",
        "CPU share",
        "Of the time of all processes that ran or could have run, with an interval of 95 %",
        (row) => row.share,
      ),
      amount<Kind>(
        "busy",
        "Of its time",
        "The part of its own time in which it ran or could have run",
        (row) => row.share_busy.share,
        share,
      ),
      amount<Kind>(
        "reductions",
        "Reductions",
        "Its part of the reductions that looks have seen",
        (row) => row.of_reductions,
        share,
      ),
      amount<Kind>("processes", "Processes", "How many there are, on average", (r) => r.processes),
      amount<Kind>(
        "queue",
        "Mailboxes",
        "Messages in all their mailboxes, on average",
        (row) => row.queue,
        number,
        false,
      ),
      amount<Kind>(
        "most",
        "Longest",
        "The longest mailbox of one that was seen",
        (row) => row.most_queue,
        count,
      ),
      amount<Kind>("looks", "Looks", "How often one was looked at", (row) => row.looks, count),
    ],
  });

export const placesTable = (caption: string, of: string): Table<Place> =>
  table<Place>({
    caption,
    id: (row) => `${row.function} ${row.caller}`,
    order: { key: "share", direction: "descending" },
    filter: "",
    filterText: (row) => `${row.function} ${row.caller} ${row.groups.join(" ")}`,
    maxHeight: HEIGHT,
    empty: "No process was seen to do that in this part.",
    columns: [
      words("function", "In", (row) => row.function),
      words("caller", "Called from", (row) => row.caller, true),
      shares<Place>("share", "Share", of, (row) => row.share),
      amount<Place>("processes", "Processes", "How many, on average", (row) => row.processes),
      amount<Place>("looks", "Looks", "How often one was seen there", (row) => row.looks, count),
      words("kinds", "Of", (row) => row.groups.join(", "), true),
    ],
  });

export const nodesTable = (chosen: (node: string) => void): Table<NodeRow> =>
  table<NodeRow>({
    caption: "Nodes",
    id: ({ node }) => node,
    order: { key: "node", direction: "ascending" },
    maxHeight: HEIGHT,
    onChoose: ({ node }) => chosen(node),
    columns: [
      words("node", "Node", ({ node }) => node),
      amount<NodeRow>(
        "busy",
        "Run or runnable",
        "Processes that run or wait for a scheduler, on average",
        (row) => row.busy,
      ),
      amount<NodeRow>(
        "awake",
        "Awake",
        "The part of the time in which its schedulers were awake",
        (row) => row.awake,
        share,
        false,
      ),
      amount<NodeRow>(
        "reductions",
        "Reductions/s",
        "All that the node had",
        (row) => row.reductions_s,
      ),
      amount<NodeRow>(
        "queue",
        "Mailboxes",
        "Messages in all mailboxes, on average",
        (row) => row.queue,
      ),
      amount<NodeRow>("processes", "Processes", "How many, on average", (row) => row.processes),
    ],
  });

type State = Shares["states"][number];

export const statesTable = (): Table<State> =>
  table<State>({
    caption: "States of processes",
    id: ({ state }) => state,
    order: { key: "processes", direction: "descending" },
    empty: "No process was looked at in this part.",
    columns: [
      words("state", "State", ({ state }) => stateText(state)),
      amount<State>(
        "processes",
        "Processes",
        "How many are in it, on average",
        (row) => row.processes,
        number,
        false,
      ),
      amount<State>("looks", "Looks", "", (row) => row.looks, count, false),
    ],
  });

type Scheduler = Shares["schedulers"][number];

export const schedulersTable = (several: boolean): Table<Scheduler> =>
  table<Scheduler>({
    caption: "Schedulers",
    id: (row) => `${row.node} ${row.number}`,
    order: { key: "awake", direction: "descending" },
    maxHeight: "20rem",
    columns: [
      ...(several ? [words<Scheduler>("node", "Node", ({ node }) => node)] : []),
      amount<Scheduler>("number", "Scheduler", "", (row) => row.number, String, false),
      words("type", "Runs", ({ type }) => schedulerText(type)),
      amount<Scheduler>(
        "awake",
        "Awake",
        "The part of the time in which it was awake",
        (row) => row.awake,
        share,
        false,
      ),
    ],
  });

type Thread = Shares["threads"][number];

export const threadsTable = (several: boolean): Table<Thread> =>
  table<Thread>({
    caption: "Threads, in the whole time",
    id: (row) => `${row.node} ${row.type}`,
    order: { key: "type", direction: "ascending" },
    maxHeight: "20rem",
    empty: "Microstate accounting was switched on by somebody else, and was not read.",
    columns: [
      ...(several ? [words<Thread>("node", "Node", ({ node }) => node)] : []),
      words("type", "Threads", ({ type }) => type),
      words("states", "What they do", ({ states }) =>
        Object.entries(states)
          .filter(([, part]) => part >= 0.0005)
          .sort(([, a], [, b]) => b - a)
          .map(([name, part]) => `${name} ${percent(part * 100)}`)
          .join(", "),
      ),
    ],
  });
