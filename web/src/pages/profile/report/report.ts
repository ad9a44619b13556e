// SPDX-License-Identifier: Apache-2.0
// The report of the whole recording: schedulers, concurrency, and the first processes by each measure as bars.
import { children as fill, h, styled, text as setText } from "../../../lib/dom";
import { count, lasting, share } from "../../../lib/format";
import { bar, cellBar } from "../../../lib/bars";
import { card, choice, type Choice, note, stat } from "../../../ui/parts";
import { type About } from "../answers";
import { getReport, type Leader, type Report } from "../sums-answers";
import { nodeOfScheduler, schedulerName } from "../nodes-model";
import { ReportCurve } from "./report-curve";
import {
  activity,
  activityText,
  awake,
  barOf,
  curveText,
  FEW,
  hasRun,
  hasRunnable,
  type List,
  lists,
  TOPS,
  utilisation,
} from "./report-model";
import { linkButton } from "../parts";
import { Still } from "../still";
import "./report.css";

const POINTS = 200;
const LEGEND = [
  ["running", "runs"],
  ["runnable", "waits for a scheduler"],
  ["waiting", "waits"],
] as const;

export interface ReportEvents {
  opened(process: number): void;
  /** So many rows, for the address. */
  chose(top: string): void;
}

export class ReportCard {
  readonly root: HTMLElement;
  private readonly says = h("p", { class: "profile-says muted num", role: "status" });
  private readonly body = h("div", { class: "report" });
  private readonly tops: Choice<string>;
  private readonly curve = new ReportCurve();
  private readonly still = new Still(
    () => this.root,
    (message) => {
      setText(this.says, message);
      fill(this.body);
    },
  );

  constructor(
    private readonly about: About,
    private readonly events: ReportEvents,
  ) {
    this.tops = choice<string>(
      "Rows of each list",
      TOPS.map((top) => [String(top), `First ${top}`] as const),
      String(FEW),
      (top) => events.chose(Number(top) === FEW ? "" : top),
    );
    this.root = card(
      "Report",
      {
        hint: "Of the whole recording, whatever part the time line shows. `bin/sderl prof report --by all` prints the same.",
        tools: [this.tops.root],
        testid: "profile-report",
      },
      this.says,
      this.body,
    );
  }

  /** Asks once for each number of rows. */
  show(text: string | undefined): void {
    const top = TOPS.find((one) => String(one) === text) ?? FEW;
    this.tops.choose(String(top));
    const question = async () => {
      const report = await getReport(top, POINTS);
      return () => this.draw(report);
    };
    this.still.ask(String(top), question, 0);
  }

  destroy(): void {
    this.curve.destroy();
    this.still.forget();
  }

  private draw(report: Report): void {
    const { about } = this;
    const [isRun, isRunnable] = [hasRun(about), hasRunnable(about)];
    const { shown, empty } = lists(report);
    // The page says why it is not known who waits for a scheduler.
    const lacks = empty.filter(({ measure }) => measure !== "runnable" || isRunnable || !isRun);
    setText(
      this.says,
      isRun ? `${curveText(report, about)}.` : "It was not recorded when processes run.",
    );
    if (isRun) this.curve.draw(report, about);
    fill(
      this.body,
      this.totals(report),
      ...(isRun ? this.running(isRunnable) : []),
      this.schedulers(report),
      h(
        "div",
        { class: "report-lists" },
        ...shown.map((list) => this.list(list, report.top[list.measure])),
      ),
      lacks.length === 0
        ? null
        : note(
            `The recording has nothing on: ${lacks
              .map(({ title, item }) => `${title.toLowerCase()} (${item})`)
              .join(", ")}. In brackets is the item that records it.`,
          ),
    );
  }

  /** What the colours mean, and the curve. */
  private running(isRunnable: boolean): HTMLElement[] {
    return [
      h(
        "div",
        { class: "profile-legend" },
        ...LEGEND.filter(([kind]) => isRunnable || kind !== "runnable").map(([kind, text]) =>
          h("span", { class: `profile-key key-${kind}` }, h("i", {}), text),
        ),
      ),
      h(
        "div",
        {},
        h("h3", {}, isRunnable ? "Running and waiting for a scheduler" : "Running"),
        this.curve.root,
      ),
    ];
  }

  private totals(report: Report): HTMLElement {
    const { about } = this;
    const isRun = hasRun(about);
    const { totals } = report;
    const used = utilisation(report, about);
    const one = (label: string, value: string, more = "") => {
      const made = stat(label);
      made.draw(value, more);
      return made.root;
    };
    return h(
      "dl",
      { class: "report-stats" },
      one(
        "Schedulers used",
        used === null || !isRun ? "not known" : share(used),
        about.online === null ? "" : `of ${count(about.online)}`,
      ),
      one(
        "Processes run",
        isRun ? lasting(totals.run) : "not known",
        `${count(report.processes)} processes`,
      ),
      hasRunnable(about) ? one("Wait for a scheduler", lasting(totals.runnable)) : null,
      totals.gc > 0 ? one("Collect garbage", lasting(totals.gc)) : null,
      about.has_messages ? one("Messages sent", count(totals.sent)) : null,
    );
  }

  private schedulers(report: Report): HTMLElement | null {
    const rows = awake(report, this.about.duration);
    if (rows.length === 0) return null;
    return h(
      "div",
      {},
      h("h3", {}, "Schedulers awake"),
      h(
        "div",
        { class: "bars report-awake" },
        ...rows.map(({ scheduler, share: part }) => {
          const made = bar(this.scheduler(scheduler), (value) => share(value), false);
          made.draw(part, 1);
          setText(made.root.querySelector(".bar-value") as Element, share(part));
          return made.root;
        }),
      ),
    );
  }

  /** Each of several nodes has a first scheduler. */
  private scheduler(scheduler: number): string {
    const { nodes } = this.about;
    const name = schedulerName(scheduler, nodes);
    const node = nodes.length > 1 ? nodeOfScheduler(scheduler, nodes) : undefined;
    return node === undefined ? name : `${name} at ${node.node}`;
  }

  private list(list: List, rows: readonly Leader[]): HTMLElement {
    const { title, measure, show } = list;
    const isRun = hasRun(this.about);
    const heads = ["Process", title, ...(isRun ? ["Does"] : [])];
    return h(
      "section",
      { "aria-label": title },
      h("h3", {}, title),
      h(
        "table",
        { class: "table report-list" },
        h("caption", { class: "visually-hidden" }, title),
        h(
          "thead",
          { class: "visually-hidden" },
          h("tr", {}, ...heads.map((text) => h("th", { scope: "col" }, text))),
        ),
        h(
          "tbody",
          {},
          ...rows.map((row) =>
            h(
              "tr",
              {},
              h("td", {}, this.link(row)),
              h(
                "td",
                { class: "num", title: show(row) },
                cellBar(barOf(row, rows, measure), show(row)),
              ),
              isRun ? h("td", {}, strip(row, this.about)) : null,
            ),
          ),
        ),
      ),
    );
  }

  private link({ process, number: of, entry }: Leader): HTMLElement {
    return linkButton(
      process,
      () => this.events.opened(of),
      entry === "" ? process : `${process} ${entry}`,
    );
  }
}

/** What a process did, as a bar that is as long as the recording. */
function strip(row: Leader, about: About): HTMLElement {
  const text = activityText(row, hasRunnable(about));
  return h(
    "span",
    { class: "profile-stack report-strip", role: "img", "aria-label": text, title: text },
    ...activity(row, about.duration).map(({ kind, share: part }) =>
      styled(h("i", { class: `step-${kind}` }), "width", `${(100 * part).toFixed(2)}%`),
    ),
  );
}
