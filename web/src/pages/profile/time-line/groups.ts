// SPDX-License-Identifier: Apache-2.0
// The replay of operations on groups: one after the other in time, and the groups as they were at each of them.
import { children as fill, h, set, text as setText } from "../../../lib/dom";
import { count } from "../../../lib/format";
import { type Table, table } from "../../../lib/table";
import { icon, type IconName } from "../../../ui/icons";
import { card } from "../../../ui/parts";
import { type About, getOperations, type Operation, type Operations } from "../answers";
import {
  atBegin,
  callText,
  endOf,
  FREE,
  isOfNames,
  nextStep,
  operationText,
  outcomeText,
  Replay,
  type Shown,
  shown,
} from "./groups-model";
import { ADDRESS_MS, lasting } from "../range";
import { measure } from "../../../lib/columns";
import { linkButton } from "../parts";
import { Still } from "../still";

/** As many as one can step through; the server has more of a longer recording. */
const MOST = 10_000;
const PLAY_MS = 900;
/** Members of a group that are drawn; the others are counted. */
const MOST_MEMBERS = 60;

export interface GroupsEvents {
  /** The moment that is shown has changed, for the time line. */
  at(moment: number): void;
  /** The same, for the address, when it stands still. */
  went(moment: number | null): void;
  opened(process: number): void;
}

interface Row extends Operation {
  number: number;
}

export class GroupsCard {
  readonly root: HTMLElement;
  private readonly says = h("p", { class: "profile-says num", role: "status" });
  private readonly limits = h("p", { class: "profile-says muted", hidden: true });
  private readonly picture = h("div", { class: "profile-groups", "data-testid": "profile-groups" });
  private readonly slider = h("input", {
    type: "range",
    min: 0,
    max: 0,
    step: 1,
    "aria-label": "Operations that have been called",
  });
  private readonly playing: HTMLButtonElement;
  private readonly names = h(
    "button",
    {
      type: "button",
      class: "button",
      title: "Steps and rows are those that register and unregister names, too",
      "aria-pressed": "true",
      onclick: () => this.toggleNames(),
    },
    "Names, too",
  );
  private hasNames = true;
  private readonly table: Table<Row>;
  private replay: Replay | null = null;
  private step = 0;
  private readonly still = new Still(
    () => this.root,
    (message) => {
      setText(this.says, message);
      this.table.empty("No answer.");
      this.table.rows([]);
    },
  );
  private wanted: number | null = null;
  private timer: ReturnType<typeof setInterval> | undefined;
  private telling: ReturnType<typeof setTimeout> | undefined;

  constructor(
    private readonly about: About,
    private readonly events: GroupsEvents,
  ) {
    this.playing = button("play", "Play", () => this.toggle());
    this.slider.addEventListener("input", () => this.slide(Number(this.slider.value)));
    this.table = operationsTable((row) => this.choose(row.number), events.opened);
    this.root = card(
      "Groups",
      {
        hint: "The groups step by step, as the recorded operations changed them. Not known is what no operation tells: earlier members and names, names whose processes ended, nodes that went down.",
        tools: [this.names],
        testid: "profile-replay",
      },
      h(
        "div",
        { class: "profile-player", role: "group", "aria-label": "Replay" },
        button("back", "The begin", () => this.choose(0)),
        button("left", "One step back", () => this.go(-1)),
        this.playing,
        button("right", "One step on", () => this.go(1)),
        button("forward", "The end", () => this.choose(this.replay?.steps.length ?? 0)),
        this.slider,
      ),
      this.says,
      this.limits,
      this.picture,
      this.table.root,
    );
  }

  /** Those of the whole recording, at a moment; at its end where none is given. */
  show(moment: number | null): void {
    const isSame = moment === this.wanted;
    this.wanted = moment;
    if (!isSame) this.forget();
    if (this.replay === null) this.still.ask("all", () => this.question(), 0);
    // The slider is ahead of the address.
    else if (this.telling !== undefined && isSame) this.events.at(this.moment ?? 0);
    else if (moment !== null && moment !== this.moment) this.draw(this.replay.countAt(moment));
  }

  /** It is not shown any more. */
  hide(): void {
    this.pause();
    this.forget();
  }

  destroy(): void {
    this.still.forget();
    this.pause();
    this.forget();
  }

  private async question(): Promise<() => void> {
    const found = await getOperations(null, [], MOST);
    return () => this.begin(found);
  }

  private begin(found: Operations): void {
    this.replay = new Replay(atBegin(this.about.nodes), found.rows);
    const { steps } = this.replay;
    set(this.slider, "max", steps.length);
    this.names.hidden = !steps.some(isOfNames) || steps.every(isOfNames);
    this.table.empty("No operation on groups was called while it was recorded.");
    this.list();
    const lost = found.all > steps.length;
    this.limits.hidden = !lost;
    if (lost)
      setText(
        this.limits,
        `The recording has ${count(found.all)} operations: these are the first ${count(steps.length)}.`,
      );
    this.draw(this.wanted === null ? steps.length : this.replay.countAt(this.wanted));
  }

  /** When the step that is shown had taken effect. */
  private get moment(): number | null {
    const one = this.replay?.steps[this.step - 1];
    return one === undefined ? null : endOf(one);
  }

  private choose(step: number): void {
    if (this.replay === null) return;
    this.forget();
    this.draw(step);
    this.events.went(this.moment ?? 0);
  }

  private slide(step: number): void {
    if (this.replay === null) return;
    this.forget();
    this.draw(step);
    this.events.at(this.moment ?? 0);
    this.telling = setTimeout(() => {
      this.telling = undefined;
      this.events.went(this.moment ?? 0);
    }, ADDRESS_MS);
  }

  private forget(): void {
    clearTimeout(this.telling);
    this.telling = undefined;
  }

  /** To the next one, or to the next that is not of names. */
  private go(by: 1 | -1): void {
    const { replay } = this;
    if (replay === null) return;
    const { steps } = replay;
    this.choose(nextStep(this.step, by, steps.length, (step) => this.isListed(steps[step - 1])));
  }

  private isListed(one: Operation | undefined): boolean {
    return this.hasNames || one === undefined || !isOfNames(one);
  }

  private list(): void {
    const steps = this.replay?.steps ?? [];
    this.table.rows(
      steps.map((one, i) => ({ ...one, number: i + 1 })).filter((one) => this.isListed(one)),
    );
  }

  private toggleNames(): void {
    this.hasNames = !this.hasNames;
    set(this.names, "aria-pressed", String(this.hasNames));
    this.list();
  }

  private toggle(): void {
    if (this.timer !== undefined) return this.pause();
    const { replay } = this;
    if (replay === null || replay.steps.length === 0) return;
    if (this.step >= replay.steps.length) this.choose(0);
    this.timer = setInterval(() => {
      this.go(1);
      if (this.step >= replay.steps.length) this.pause();
    }, PLAY_MS);
    label(this.playing, "pause", "Pause");
  }

  private pause(): void {
    clearInterval(this.timer);
    this.timer = undefined;
    label(this.playing, "play", "Play");
  }

  private draw(wanted: number): void {
    const { replay } = this;
    if (replay === null) return;
    const { steps } = replay;
    this.step = Math.max(0, Math.min(steps.length, wanted));
    this.slider.value = String(this.step);
    const last = steps[this.step - 1];
    const words =
      steps.length === 0
        ? "No operation on groups was called while it was recorded."
        : last === undefined
          ? `Before the first of ${count(steps.length)} operations.`
          : `${count(this.step)} of ${count(steps.length)}, ${lasting(last.at)} after the begin: ${operationText(last)}${where(last, this.about)}.`;
    setText(this.says, words);
    set(this.slider, "aria-valuetext", words);
    this.table.mark(last === undefined ? null : String(this.step));
    const groups = shown(replay.after(this.step - 1), replay.after(this.step));
    fill(
      this.picture,
      ...(groups.length === 0
        ? [h("p", { class: "muted" }, "No group is known yet.")]
        : groups.map(groupCard)),
    );
  }
}

const where = (one: Operation, about: About): string =>
  about.nodes.length > 0 && !one.by.endsWith(one.node) ? ` at ${one.node}` : "";

function label(element: HTMLElement, name: IconName, text: string): void {
  set(element, "title", text);
  set(element, "aria-label", text);
  fill(element, icon(name));
}

function button(name: IconName, text: string, act: () => void): HTMLButtonElement {
  const element = h("button", { type: "button", class: "icon-button", onclick: act });
  label(element, name, text);
  return element;
}

const CHANGES = { stays: "", came: "new", left: "gone" } as const;

function groupCard(one: Shown): HTMLElement {
  const change = CHANGES[one.change];
  const members = one.members.slice(0, MOST_MEMBERS);
  const hidden = one.members.length - members.length;
  const more =
    hidden > 0
      ? [`and ${count(hidden)} more${one.mayHaveMore ? ", at least" : ""}`]
      : one.mayHaveMore && one.change !== "left"
        ? ["there may be more"]
        : [];
  return h(
    "section",
    { class: `profile-group group-${one.change}`, "aria-label": `Group ${one.group}` },
    h(
      "h3",
      { title: one.group },
      one.group === FREE ? "free names" : one.group,
      change === "" ? null : h("span", { class: "profile-change" }, change),
    ),
    h(
      "ul",
      {},
      ...members.map(({ node, change: of }) =>
        h(
          "li",
          { class: `group-${of}`, title: node },
          node,
          CHANGES[of] === "" ? null : h("span", { class: "profile-change" }, CHANGES[of]),
        ),
      ),
      ...more.map((text) => h("li", { class: "muted" }, text)),
    ),
    h("p", { class: "muted num" }, namesText(one)),
  );
}

function namesText({ names, moreNames, mayHaveNames, change }: Shown): string {
  if (change === "left") return "";
  const by = moreNames === 0 ? "" : ` (${moreNames > 0 ? "+" : "−"}${Math.abs(moreNames)})`;
  const before = mayHaveNames ? ", and those of before" : "";
  return `${count(names)} ${names === 1 ? "name" : "names"}${by}${before}`;
}

const operationsTable = (
  chosen: (row: Row) => void,
  opened: (process: number) => void,
): Table<Row> =>
  table<Row>({
    caption: "Operations on groups",
    id: ({ number }) => String(number),
    order: { key: "number", direction: "ascending" },
    maxHeight: "26rem",
    empty: "No answer yet.",
    onChoose: chosen,
    columns: [
      measure("number", "Step", (row) => row.number, count, { width: "4.4rem", narrow: "3.4rem" }),
      measure("at", "At", (row) => row.at, lasting, {
        width: "6.5rem",
        narrow: "5rem",
        hint: "When it was called, since the begin",
      }),
      {
        key: "call",
        label: "Operation",
        value: (row) => callText(row),
        show: (row) => h("span", { title: callText(row) }, callText(row)),
      },
      {
        key: "by",
        label: "By",
        value: (row) => row.by,
        show: (row) =>
          linkButton(row.by, (event) => {
            event.stopPropagation();
            opened(row.process);
          }),
        width: "14rem",
        wide: true,
      },
      {
        key: "outcome",
        label: "Outcome",
        value: (row) => outcomeText(row),
        show: (row) => h("span", { title: outcomeText(row) }, outcomeText(row)),
      },
    ],
  });
