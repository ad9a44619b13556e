// SPDX-License-Identifier: Apache-2.0
// Messages that went over gateways in the part that is shown: whereto, by which ways, and what did not arrive.
import { h, text as setText } from "../../../lib/dom";
import { bytes, count } from "../../../lib/format";
import { type Table, table } from "../../../lib/table";
import { card } from "../../../ui/parts";
import { type About } from "../answers";
import { partOf, type Range } from "../range";
import { Still } from "../still";
import { type Failure, getRouted, type Passed, type Routed, type Sent } from "../sums-answers";
import { measure } from "../../../lib/columns";

const ROWS = 200;

export class RoutedCard {
  readonly root: HTMLElement;
  private readonly says = h("p", { class: "profile-says muted num", role: "status" });
  private readonly sent: Table<Sent>;
  private readonly passed: Table<Passed>;
  private readonly failures: Table<Failure>;
  private readonly undelivered: HTMLElement;
  private readonly still = new Still(
    () => this.root,
    (message) => {
      setText(this.says, message);
      this.draw(NOTHING, "No answer.");
    },
  );

  constructor(private readonly about: About) {
    const isOfSeveral = about.nodes.length > 0;
    this.sent = sentTable(isOfSeveral);
    this.passed = passedTable(isOfSeveral);
    this.failures = failuresTable(isOfSeveral);
    this.undelivered = h("div", {}, h("h3", {}, "Not delivered"), this.failures.root);
    this.root = card(
      "Routed messages",
      {
        hint: "An attempt over an unreachable gateway and the next one over another count as two. Messages that a gateway sends straight to a process are not counted as delivered.",
        testid: "profile-routed",
      },
      this.says,
      h("h3", {}, "Sent"),
      this.sent.root,
      h("h3", {}, "Passed on"),
      this.passed.root,
      this.undelivered,
    );
  }

  /** Asks when the range has stood still for a moment. */
  show(range: Range): void {
    this.still.ask(`${range.from}-${range.to}`, async () => {
      const routed = await getRouted(partOf(range, this.about.duration), ROWS);
      return () => this.draw(routed);
    });
  }

  destroy(): void {
    this.still.forget();
  }

  private draw(routed: Routed, empty?: string): void {
    const { sent, passed, undelivered } = routed;
    if (empty === undefined) setText(this.says, routedText(routed));
    this.sent.empty(empty ?? "No process sent a message over a gateway in this part.");
    this.passed.empty(empty ?? "No node passed on a message in this part.");
    this.sent.rows(sent.rows);
    this.passed.rows(passed.rows);
    this.failures.rows(undelivered.rows);
    this.undelivered.hidden = undelivered.rows.length === 0;
  }
}

const NOTHING: Routed = {
  sent: { count: 0, bytes: 0, rows: [] },
  gateways: [],
  passed: { count: 0, rows: [] },
  delivered: 0,
  undelivered: { count: 0, rows: [] },
};

/** What became of the routed messages, in a sentence. */
function routedText({ sent, gateways, passed, delivered, undelivered }: Routed): string {
  const [first] = gateways;
  const most =
    first === undefined || sent.count === 0
      ? ""
      : `, ${count(first.count)} of them first over ${first.first}`;
  return `${count(sent.count)} sent (${bytes(sent.bytes)})${most}; ${count(passed.count)} times passed on, ${count(delivered)} delivered by those that pass on, ${count(undelivered.count)} not delivered.`;
}

const text = (value: string | null) => h("span", { title: value ?? "" }, value ?? "?");

const at = <Row extends { at: string | null }>(label: string, hint: string) => ({
  key: "at",
  label,
  hint,
  value: (row: Row) => row.at ?? "",
  show: (row: Row) => text(row.at),
});

const numbers = <Row extends { count: number }>() =>
  measure("count", "Messages", (row: Row) => row.count, count, { width: "6.5rem", narrow: "5rem" });

const sentTable = (isOfSeveral: boolean): Table<Sent> =>
  table<Sent>({
    caption: "Messages sent over gateways",
    id: (row) => JSON.stringify([row.at, row.to, row.whom, row.first]),
    order: { key: "count", direction: "descending" },
    maxHeight: "22rem",
    empty: "No answer yet.",
    columns: [
      ...(isOfSeveral ? [at<Sent>("From", "The node of the process that sent them")] : []),
      {
        key: "to",
        label: "To",
        hint: "The group or node",
        value: (row) => row.to,
        show: (row) => text(row.to),
      },
      { key: "whom", label: "Whom", value: (row) => row.whom, show: (row) => text(row.whom) },
      {
        key: "first",
        label: "First over",
        hint: "The gateway to which they went first",
        value: (row) => row.first,
        show: (row) => text(row.first),
      },
      numbers<Sent>(),
      measure("bytes", "Bytes", (row) => row.bytes, bytes, { wide: true, width: "6.5rem" }),
    ],
  });

const passedTable = (isOfSeveral: boolean): Table<Passed> =>
  table<Passed>({
    caption: "Messages passed on by gateways",
    id: (row) => JSON.stringify([row.at, row.from, row.next]),
    order: { key: "count", direction: "descending" },
    maxHeight: "22rem",
    empty: "No answer yet.",
    columns: [
      {
        key: "from",
        label: "Sent at",
        hint: "The node of the process that sent them",
        value: (row) => row.from,
        show: (row) => text(row.from),
      },
      ...(isOfSeveral ? [at<Passed>("Passed on by", "The gateway")] : []),
      { key: "next", label: "To", value: (row) => row.next, show: (row) => text(row.next) },
      numbers<Passed>(),
      measure("bundles", "In bundles", (row) => row.bundles, count, {
        wide: true,
        width: "6.5rem",
        hint: "Messages that go the same way travel together",
      }),
    ],
  });

const failuresTable = (isOfSeveral: boolean): Table<Failure> =>
  table<Failure>({
    caption: "Messages that were not delivered",
    id: (row) => JSON.stringify([row.at, row.to, row.whom, row.why]),
    order: { key: "count", direction: "descending" },
    maxHeight: "22rem",
    empty: "All were delivered.",
    columns: [
      { key: "to", label: "To", value: (row) => row.to, show: (row) => text(row.to) },
      { key: "whom", label: "Whom", value: (row) => row.whom, show: (row) => text(row.whom) },
      ...(isOfSeveral ? [at<Failure>("At", "The node that could not deliver them")] : []),
      { key: "why", label: "Because", value: (row) => row.why, show: (row) => text(row.why) },
      numbers<Failure>(),
    ],
  });
