// SPDX-License-Identifier: Apache-2.0
// What the service of operations does with the cluster: the steps under way, those left, and the history.
import type { Ctx, MountedPage, Page } from "../../ui/ctx";
import type { Change } from "../../store/signals";
import type { Operation, Revision } from "../../model/protocol";
import { behind, stateWords } from "../../model/operation";
import { asked, type Asked, stateMark } from "../../ui/operation";
import { card, searchKey } from "../../ui/parts";
import { type Table, table } from "../../lib/table";
import { children as fill, h, prose, set, text as setText } from "../../lib/dom";
import { list } from "./list";
import { PlanCard } from "./plan";
import { RecordCard } from "./record";
import { isNarrow, when } from "./when";
import "../../styles/data.css";
import "../../styles/operation.css";

export const page: Page = {
  mount: (root, ctx) => new DeploymentsPage(root, ctx),
};

type Host = Operation["status"]["hosts"][number];

/** On a phone there is no room for the folders of a file that was applied. */
const shortened = (what: string): string =>
  isNarrow() ? what.replace(/^apply .*\/(?=[^/])/, "apply ") : what;

class DeploymentsPage implements MountedPage {
  private readonly head = h("p", { class: "muted", "data-testid": "ops-cluster" });
  private readonly state = h("p", { class: "ops-about", role: "status" });
  private words = "";
  private readonly bar = h("progress", {
    class: "ops-bar",
    "aria-label": "Steps that are done",
    max: 1,
  });
  private readonly problems = h("div", { role: "alert" });
  private readonly doing = list("ul", "Under way");
  private readonly left = list("ol", "Left to do, in this order");
  private readonly waiting = list("ul", "What it waits for");
  private readonly history: Table<Revision>;
  private readonly hosts: Table<Host>;
  private readonly parts: HTMLElement[];
  private readonly plan: PlanCard;
  private readonly record: RecordCard;
  private readonly asked: Asked;
  private readonly release: () => void;

  constructor(
    private readonly root: HTMLElement,
    ctx: Ctx,
  ) {
    this.history = table<Revision>({
      caption: "History",
      id: ({ revision }) => String(revision),
      order: { key: "revision", direction: "descending" },
      maxHeight: "24rem",
      filter: "",
      roomy: true,
      empty: "There is no revision yet.",
      columns: [
        {
          key: "revision",
          label: "Revision",
          value: ({ revision }) => revision,
          numeric: true,
          width: "6rem",
          narrow: "5.2rem",
        },
        {
          key: "at",
          label: "When",
          value: ({ at }) => at,
          show: ({ at }) => h("span", { class: "num" }, when(at)),
          width: "11rem",
          narrow: "4.7rem",
        },
        { key: "who", label: "Who", value: ({ who }) => who, width: "9rem", wide: true },
        {
          key: "what",
          label: "What",
          value: ({ what }) => what,
          show: ({ what }) => h("span", { class: "lines", title: what }, shortened(what)),
        },
        {
          key: "result",
          label: "Result",
          value: ({ result }) => result,
          show: ({ result, why }) => outcome(result, why ?? ""),
          width: "14rem",
          narrow: "6.2rem",
        },
      ],
    });
    this.hosts = table<Host>({
      caption: "Hosts",
      id: ({ id }) => id,
      order: { key: "id", direction: "ascending" },
      maxHeight: "24rem",
      empty: "There is no host.",
      columns: [
        { key: "id", label: "Host", value: ({ id }) => id },
        {
          key: "state",
          label: "State",
          value: ({ state }) => state,
          show: ({ state }) => stateMark(state),
          width: "9rem",
          narrow: "7.4rem",
        },
        {
          key: "instances",
          label: "Instances",
          value: ({ instances }) => instances,
          numeric: true,
          width: "7rem",
          narrow: "5.4rem",
        },
        { key: "why", label: "Why", value: ({ why }) => why ?? "", wide: true },
      ],
    });
    this.parts = [
      this.problems,
      card(
        "Deployment",
        { class: "ops-card", testid: "ops-deployment" },
        this.state,
        this.bar,
        this.doing.root,
        this.left.root,
        this.waiting.root,
      ),
      card(
        "History",
        {
          hint: "Each change of what is to be is a revision; `bin/sderl ops rollback N` goes back.",
        },
        this.history.root,
      ),
      card("Hosts", {}, this.hosts.root),
    ];
    this.plan = new PlanCard(ctx);
    this.record = new RecordCard(ctx);
    this.parts.push(this.record.root);
    this.asked = asked(ctx, (operation) => this.draw(operation));
    root.append(
      h("div", { class: "page-head" }, h("div", {}, h("h1", {}, "Deployments"), this.head)),
      this.asked.note,
      ...this.parts,
      this.plan.root,
    );
    this.release = searchKey(ctx, root, "Search the history");
    this.draw(null);
  }

  update(change: Change): void {
    if (!change.has("hello")) return;
    this.asked.refresh();
    this.record.refresh();
    this.plan.draw();
  }

  destroy(): void {
    this.asked.destroy();
    this.record.destroy();
    this.plan.destroy();
    this.release();
    this.root.replaceChildren();
  }

  private draw(operation: Operation | null): void {
    for (const part of this.parts) part.hidden = operation === null;
    this.record.watch(operation !== null);
    if (operation === null) return setText(this.head, "");
    const { status, revisions, steps } = operation;
    setText(this.head, `Cluster ${status.cluster}, revision ${status.revision}: ${status.state}`);
    const words = stateWords(status);
    if (words !== this.words) fill(this.state, ...prose((this.words = words)));
    const { progress } = status;
    this.bar.hidden = progress === null || status.state !== "working";
    if (progress !== null) {
      set(this.bar, "max", progress.total);
      set(this.bar, "value", progress.done);
    }
    this.doing.draw(status.doing);
    const { left, waiting } = behind(status.doing, steps, status.waiting);
    this.left.draw(left);
    this.waiting.draw(waiting);
    this.problems.hidden = status.problems.length + status.information.length === 0;
    const said = JSON.stringify([status.problems, status.information]);
    if (this.problems.dataset["said"] !== said) {
      this.problems.dataset["said"] = said;
      fill(
        this.problems,
        ...status.problems.map((problem) =>
          h("p", { class: "note ops-problem" }, ...prose(problem)),
        ),
        ...status.information.map((text) => h("p", { class: "note" }, ...prose(text))),
      );
    }
    this.history.rows(revisions);
    this.hosts.rows(status.hosts);
  }
}

/** Results that are neither good nor bad: it goes on, or was replaced before its end. */
const OTHERS = new Set(["", "running", "paused", "replaced", "not recorded"]);

function outcome(result: string, why: string): HTMLElement | string {
  if (result === "good") return stateMark("up", result);
  if (OTHERS.has(result)) return why === "" ? result : h("span", { title: why }, result);
  return h("span", { title: why }, stateMark("failed", result));
}
