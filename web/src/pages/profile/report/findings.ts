// SPDX-License-Identifier: Apache-2.0
// What keeps the program from being faster, with evidence and remedy; a choice shows it on the time line.
import { h } from "../../../lib/dom";
import { share } from "../../../lib/format";
import { card, note } from "../../../ui/parts";
import { type Finding, type Findings, getFindings } from "../answers";
import { evidenceRows, kindText, sentence } from "./findings-model";
import { lasting, type Range, tickLabel } from "../range";
import { Still } from "../still";
import "../../../styles/findings.css";

export class FindingsCard {
  readonly root = h("div", { class: "profile-findings", "data-testid": "profile-findings" });
  private readonly still = new Still(
    () => this.root,
    (message) => this.events.failed(message),
  );

  constructor(
    private readonly events: {
      /** A time, or the whole, with these processes. */
      went(range: Range | null, processes: readonly number[]): void;
      failed(message: string): void;
    },
  ) {}

  /** Asks once: they are of the whole recording. */
  show(): void {
    const question = async () => {
      const findings = await getFindings();
      return () => this.draw(findings);
    };
    this.still.ask("all", question, 0);
  }

  private draw({ found, not_shown: missing }: Findings): void {
    this.root.replaceChildren(
      found.length === 0
        ? card(
            "Findings",
            {},
            h("p", {}, "Nothing of the whole recording is above the thresholds."),
          )
        : h("div", { class: "findings" }, ...found.map((one, i) => this.finding(one, i === 0))),
      ...missing.map(({ finding, needs }) =>
        note(`Not shown: ${kindText(finding)}, which needs a recording of ${needs}.`),
      ),
    );
  }

  private finding(one: Finding, open: boolean): HTMLElement {
    const go = (range: Range | null) => this.events.went(range, one.numbers);
    const button = (text: string, range: Range | null, title: string) =>
      h("button", { type: "button", class: "button num", title, onclick: () => go(range) }, text);
    const { ranges } = one;
    return h(
      "details",
      { class: "card finding finding-warning", "data-kind": one.finding, open },
      h(
        "summary",
        {},
        h(
          "span",
          { class: "finding-head" },
          h("span", { class: "muted" }, kindText(one.finding)),
          h("span", { class: "finding-since muted num" }, `weight ${share(one.weight)}`),
        ),
        h("span", { class: "finding-text", role: "heading", "aria-level": 3 }, sentence(one.text)),
      ),
      h(
        "div",
        { class: "finding-body" },
        h(
          "div",
          {},
          h("h3", {}, "Evidence"),
          h(
            "dl",
            { class: "evidence" },
            ...evidenceRows(one.evidence).flatMap(([name, value]) => [
              h("dt", {}, name),
              h("dd", { class: "num" }, value),
            ]),
          ),
          h("p", { class: "muted profile-told" }, `Threshold: ${one.threshold}.`),
        ),
        h(
          "div",
          {},
          h("h3", {}, "What to do"),
          h("p", { class: "remedy" }, one.remedy),
          h("h3", { class: "profile-when" }, "On the time line"),
          h(
            "p",
            { class: "profile-links" },
            button("The whole run", null, "Shows the processes that it is about"),
            ...ranges.map((range) =>
              button(
                `${lasting(range.to - range.from)} at ${tickLabel(range.from, range.to - range.from)}`,
                range,
                "One of the longest times",
              ),
            ),
          ),
        ),
      ),
    );
  }
}
