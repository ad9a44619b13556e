// SPDX-License-Identifier: Apache-2.0
// What the sampled nodes told of themselves over time: run queues, processes, memory, mailboxes of named processes.
import { children as fill, h } from "../../lib/dom";
import { bytes, number } from "../../lib/format";
import { type Chart, chart } from "../../lib/chart";
import { card } from "../../ui/parts";
import type { Overall } from "./answers";
import { boxLabel, longestQueues, memoryOf } from "./model";

/** Lines that are still told apart. */
const MOST_LINES = 8;

export class OverallCard {
  readonly root: HTMLElement;
  private readonly waiting = chart({
    title: "Processes that wait for a scheduler",
    format: number,
    height: 130,
  });
  private readonly queues = chart({ title: "Run queues", format: number, height: 130 });
  private readonly processes = chart({ title: "Processes", format: number, height: 130 });
  private readonly memory = chart({
    title: "Memory",
    format: bytes,
    base: 1024,
    stacked: true,
    height: 130,
  });
  private readonly mailboxes = chart({ title: "Named mailboxes", format: number, height: 130 });
  private readonly parts: [HTMLElement, (overall: Overall) => boolean][];
  private readonly list = h("div", { class: "samples-boxes" });
  private readonly none = h(
    "p",
    { class: "muted" },
    "The file has nothing of this: an earlier version wrote it.",
  );

  constructor() {
    const part = (
      title: string,
      picture: Chart,
      is: (overall: Overall) => boolean,
    ): [HTMLElement, (overall: Overall) => boolean] => [
      h("div", {}, h("h3", {}, title), picture.root),
      is,
    ];
    const always = () => true;
    this.parts = [
      part("Processes that wait for a scheduler", this.waiting, always),
      part(
        `Run queues, the longest ${MOST_LINES}`,
        this.queues,
        ({ run_queues }) => run_queues.length > 0,
      ),
      part("Processes", this.processes, always),
      part("Memory", this.memory, ({ columns }) => columns.some(({ memory }) => memory !== null)),
      part("Named mailboxes", this.mailboxes, ({ mailboxes }) => mailboxes.length > 0),
    ];
    this.root = card(
      "Node over time",
      {
        hint: "Read some twenty times a second, the memory once in each part of the time; of several nodes together. Mailboxes are those that `--mailboxes` named.",
        testid: "samples-overall",
      },
      this.none,
      h("div", { class: "samples-charts" }, ...this.parts.map(([element]) => element)),
      this.list,
    );
  }

  draw(overall: Overall, began: number, duration: number): void {
    const { columns, mailboxes, run_queues: queues } = overall;
    const isThere = columns.length > 0;
    this.none.hidden = isThere;
    for (const [element, is] of this.parts) element.hidden = !isThere || !is(overall);
    const t = columns.map(({ at }) => began + at / 1e6);
    const to = began + duration / 1e6;
    const line = (key: string, label: string, values: (number | null)[]) => ({
      key,
      label,
      values,
    });
    this.waiting.draw({
      t,
      to,
      series: [
        line(
          "mean",
          "on average",
          columns.map((one) => one.run_queue),
        ),
        line(
          "most",
          "most at a time on a node",
          columns.map((one) => one.most_run_queue),
        ),
      ],
    });
    this.queues.draw({ t, to, series: longestQueues(queues, MOST_LINES) });
    this.processes.draw({
      t,
      to,
      series: [
        line(
          "processes",
          "processes",
          columns.map((one) => one.processes),
        ),
      ],
    });
    this.memory.draw({ t, to, series: memoryOf(columns) });
    const several = new Set(mailboxes.map(({ node }) => node)).size > 1;
    this.mailboxes.draw({
      t,
      to,
      series: mailboxes
        .slice(0, MOST_LINES)
        .map((box) => line(`${box.node} ${box.name}`, boxLabel(box, several), box.mean)),
    });
    fill(
      this.list,
      mailboxes.length === 0
        ? null
        : h(
            "ul",
            { class: "muted num" },
            ...mailboxes.map((box) =>
              h(
                "li",
                {},
                `${boxLabel(box, several)}: ${box.most === null ? "no process had the name" : `${number(box.most)} messages at most`}`,
              ),
            ),
          ),
    );
  }

  destroy(): void {
    for (const one of [this.waiting, this.queues, this.processes, this.memory, this.mailboxes])
      one.destroy();
  }
}
