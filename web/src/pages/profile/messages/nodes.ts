// SPDX-License-Identifier: Apache-2.0
// The nodes of a recording of several, and the messages between them in the part that is shown.
import { h, text as setText } from "../../../lib/dom";
import { bytes, count } from "../../../lib/format";
import { type Table, table } from "../../../lib/table";
import { card } from "../../../ui/parts";
import { type About, getTraffic, type Node, type Traffic } from "../answers";
import { type Way, waysOf, within } from "../nodes-model";
import { lasting, type Range } from "../range";
import { Still } from "../still";
import { measure } from "../../../lib/columns";

export class NodesCard {
  readonly root: HTMLElement;
  private readonly says = h("p", { class: "profile-says muted num", role: "status" });
  private readonly ways: Table<Way>;
  private readonly still = new Still(
    () => this.root,
    (message) => {
      setText(this.says, message);
      this.ways.rows([]);
    },
  );

  constructor(private readonly about: About) {
    this.ways = waysTable();
    const nodes = nodesTable();
    this.root = card(
      "Nodes",
      {
        hint: "All nodes are on one time line. Their clocks were compared before and after the recording, and corrected by the messages: none arrives before it was sent.",
        testid: "profile-nodes",
      },
      nodes.root,
      h("h3", {}, "Messages between nodes"),
      this.says,
      this.ways.root,
    );
    nodes.rows(about.nodes);
  }

  /** Asks when the range has stood still for a moment. */
  show(range: Range): void {
    this.still.ask(`${range.from}-${range.to}`, async () => {
      const traffic = await getTraffic(range.from, range.to);
      return () => this.draw(traffic);
    });
  }

  destroy(): void {
    this.still.forget();
  }

  private draw(traffic: Traffic): void {
    const { own, between } = within(traffic);
    setText(
      this.says,
      `${count(between)} messages between nodes and ${count(own)} within them in this part. Times are those of the whole run, from a send to when the receiver took the message over.`,
    );
    this.ways.rows(waysOf(traffic, this.about.nodes));
  }
}

const nodesTable = (): Table<Node> =>
  table<Node>({
    caption: "Nodes",
    id: ({ node }) => node,
    order: { key: "node", direction: "ascending" },
    maxHeight: "20rem",
    empty: "There is no node.",
    columns: [
      { key: "node", label: "Node", value: (row) => row.node, show: (row) => row.node },
      {
        key: "online",
        label: "Schedulers",
        value: (row) => row.online ?? 0,
        show: (row) => (row.online === null ? "not known" : count(row.online)),
        numeric: true,
        width: "6.5rem",
        narrow: "5.4rem",
      },
      measure("length", "Recorded for", (row) => row.to - row.from, lasting, {
        width: "7.5rem",
        narrow: "5.4rem",
      }),
      measure("error", "Clock ±", (row) => row.error, lasting, {
        width: "6.5rem",
        narrow: "5.4rem",
        hint: "How far its times may be off on the common time line",
      }),
    ],
  });

const time = (ns: number | null | undefined) =>
  ns === null || ns === undefined ? "–" : lasting(ns);

const waysTable = (): Table<Way> =>
  table<Way>({
    caption: "Messages between nodes",
    id: ({ from, to }) => `${from} ${to}`,
    order: { key: "count", direction: "descending" },
    maxHeight: "26rem",
    empty: "No message was sent between nodes.",
    columns: [
      { key: "from", label: "From", value: (row) => row.from, show: (row) => row.from },
      {
        key: "to",
        label: "To",
        value: (row) => row.to,
        show: (row) =>
          row.link?.common_group === false
            ? h("span", { class: "lines" }, `${row.to} (no common group)`)
            : row.to,
      },
      measure("count", "Messages", (row) => row.count, count, {
        width: "7rem",
        narrow: "5.4rem",
        hint: "Sent in the part that the time line shows",
      }),
      measure("bytes", "Bytes", (row) => row.bytes, bytes, {
        width: "6rem",
        wide: true,
        hint: "In external format",
      }),
      measure("mean", "Take", (row) => row.link?.mean_ns, time, {
        width: "6rem",
        narrow: "5rem",
        hint: "The mean, in the whole run",
      }),
      measure("most", "At most", (row) => row.link?.most_ns, time, {
        width: "6rem",
        wide: true,
        hint: "The longest, in the whole run",
      }),
      measure("error", "±", (row) => row.link?.error_ns, time, {
        width: "6rem",
        wide: true,
        hint: "How far these times may be off: the clocks of both nodes together",
      }),
    ],
  });
