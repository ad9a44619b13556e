// SPDX-License-Identifier: Apache-2.0
// The critical path of the part that is shown: what its time is, who is on it, its longest steps.
import { children as fill, h, styled, text as setText } from "../../../lib/dom";
import { count, number, share } from "../../../lib/format";
import { card } from "../../../ui/parts";
import { getPath, type Path, type Segment } from "../answers";
import { kindsOf, longest, numbersOf, SAVES, SHORT, STEPS } from "./path-model";
import { exactly, lasting, partOf, type Range, span } from "../range";
import { Still } from "../still";
import { linkButton, list } from "../parts";

/** Steps that are drawn, and those of them that are listed. */
const SEGMENTS = 2000;
const LISTED = 40;
const PROCESSES = 12;

export interface PathEvents {
  opened(process: number): void;
  /** A step is to be seen. */
  went(step: Segment): void;
  /** Those on the path are to have lanes. */
  lanes(processes: number[]): void;
  /** The path that is drawn. */
  found(path: readonly Segment[]): void;
  /** The path is to lead to the last run of this process, or to where it leads by default. */
  led(process: number | null): void;
}

export class PathCard {
  readonly root: HTMLElement;
  private readonly says = h("p", { class: "profile-says muted num", role: "status" });
  private readonly body = h("div", { class: "profile-path" });
  private readonly leads = h("button", { type: "button", class: "button", hidden: true });
  private readonly still = new Still(
    () => this.root,
    (message) => this.nothing(message),
  );

  constructor(
    private readonly duration: number,
    private readonly events: PathEvents,
  ) {
    this.root = card(
      "Critical path",
      {
        hint: "The chain of runs, waits and messages that took as long as what is shown. Only a change of what is on it makes the program faster.",
        tools: [this.leads],
        testid: "profile-path",
      },
      this.says,
      this.body,
    );
    this.leads.addEventListener("click", () => this.events.led(this.next));
  }

  private next: number | null = null;

  /** `process`: whose last run it leads to; `chosen`: the one that is open on the page. */
  show(range: Range, process: number | null, chosen: number | null): void {
    this.next = process === null ? chosen : null;
    this.leads.hidden = process === null && chosen === null;
    setText(
      this.leads,
      process === null ? "Lead to the chosen process" : "Lead where it led before",
    );
    this.still.ask(`${range.from}-${range.to}-${process}`, async () => {
      const { path } = await getPath(partOf(range, this.duration), process, SEGMENTS);
      return () => {
        if (path === null || path.steps === 0) this.nothing("Nothing ran in this part.");
        else this.draw(path, range);
      };
    });
  }

  /** It is not shown any more. */
  hide(): void {
    this.still.forget();
    this.events.found([]);
  }

  destroy(): void {
    this.still.forget();
  }

  private nothing(words: string): void {
    setText(this.says, words);
    fill(this.body);
    this.events.found([]);
  }

  private draw(path: Path, range: Range): void {
    const all = Math.max(1, path.to - path.from);
    const drawn = path.segments.length;
    const kinds = kindsOf(path);
    setText(
      this.says,
      (path.leads_to === null
        ? ""
        : `To the last run of ${path.leads_to}, which gets most messages of a process of another node. `) +
        `${lasting(all)} in ${count(path.steps)} ${path.steps === 1 ? "step" : "steps"}` +
        (drawn < path.steps ? `, of which the ${count(drawn)} longest are drawn` : "") +
        `. With as many schedulers as it can use it would be at most ${number(path.gain.speedup_of_schedulers)} times as fast.`,
    );
    fill(
      this.body,
      h(
        "div",
        { class: "profile-stack", role: "img", "aria-label": "What the time of the path is" },
        ...kinds.map((kind) =>
          styled(
            h("i", { class: `step-${kind}`, title: STEPS[kind] }),
            "width",
            `${(100 * path.kinds[kind]) / all}%`,
          ),
        ),
      ),
      h(
        "dl",
        { class: "profile-kinds" },
        ...kinds.map((kind) =>
          h(
            "div",
            {},
            h("dt", {}, h("i", { class: `step-${kind}` }), STEPS[kind]),
            h(
              "dd",
              { class: "num" },
              `${share(path.kinds[kind] / all)}, ${lasting(path.kinds[kind])}`,
            ),
            h("dd", { class: "muted" }, SAVES[kind]),
          ),
        ),
      ),
      path.nodes.length > 0 ? nodes(path) : null,
      h("div", { class: "profile-parts" }, this.processes(path), this.steps(path, range)),
    );
    this.events.found(path.segments);
  }

  private processes(path: Path): HTMLElement {
    const { others } = path;
    const shown = path.processes.slice(0, PROCESSES);
    const hidden = path.processes.length - shown.length + others.processes;
    return h(
      "div",
      {},
      h("h3", {}, "Processes on it"),
      table(
        ["process", "runs", "share"],
        shown.map((one) => [
          linkButton(one.process, () => this.events.opened(one.number)),
          lasting(one.times.running),
          share(one.share),
        ]),
      ),
      hidden > 0 ? h("p", { class: "muted" }, `and ${count(hidden)} others`) : null,
      h(
        "p",
        { class: "profile-links" },
        h(
          "button",
          {
            type: "button",
            class: "button",
            onclick: () => this.events.lanes(numbersOf(path, PROCESSES)),
          },
          "Show them as lanes",
        ),
      ),
    );
  }

  private steps(path: Path, range: Range): HTMLElement {
    const pixel = span(range) / 1000;
    return h(
      "div",
      {},
      h("h3", {}, "Its longest steps"),
      table(
        ["at", "lasts", "it", "process"],
        longest(path, LISTED).map((step) => [
          linkButton(exactly(step.from, { from: 0, to: pixel * 1000 }, 1000), () =>
            this.events.went(step),
          ),
          lasting(step.to - step.from),
          h("span", { title: STEPS[step.kind] }, SHORT[step.kind]),
          linkButton(step.process, () => this.events.opened(step.number), where(step)),
        ]),
        { kind: "profile-steps", isNumber: (i) => i === 1 },
      ),
    );
  }
}

/** What each node has of it. */
const nodes = (path: Path): HTMLElement =>
  h(
    "div",
    {},
    h("h3", {}, "Nodes on it"),
    table(
      ["node", "runs", "waits for messages of others", "share"],
      path.nodes.map((one) => [
        one.node,
        lasting(one.times.running),
        lasting(one.times.between),
        share(one.share),
      ]),
    ),
  );

const where = (step: Segment): string =>
  [step.process, step.function, step.sender === null ? null : `from ${step.sender}`]
    .filter((text) => text !== null)
    .join(", ");

const table = (...of: Parameters<typeof list>): HTMLElement =>
  h("div", { class: "profile-scroll" }, list(...of));
