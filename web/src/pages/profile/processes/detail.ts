// SPDX-License-Identifier: Apache-2.0
// One process: what it did, where it waited, for whom, and its messages.
import { children as fill, h } from "../../../lib/dom";
import { bytes, count } from "../../../lib/format";
import { card, facts, closeButton } from "../../../ui/parts";
import { type About, type Details, getDetails, type Peer } from "../answers";
import { schedulerName } from "../nodes-model";
import { lasting, type Range } from "../range";
import { StaysPart } from "./stays";
import { linkButton, list } from "../parts";
import { Still } from "../still";

/** More than anybody reads. */
const ROWS = 12;

export class Detail {
  readonly root = h("div", { class: "profile-detail", hidden: true });
  private process: number | null = null;
  private readonly still = new Still(
    () => this.root,
    (message) => {
      this.events.failed(message);
      this.events.closed();
    },
  );
  /** None where no process is known to have changed its scheduler. */
  private readonly stays: StaysPart | null;

  constructor(
    private readonly about: About,
    private readonly events: {
      opened(process: number): void;
      closed(): void;
      failed(message: string): void;
    },
  ) {
    this.stays =
      about.totals.moves > 0 ? new StaysPart((n) => schedulerName(n, about.nodes)) : null;
  }

  /** What depends on the part of the time that is shown. */
  follow(range: Range): void {
    this.stays?.show(this.process, range);
  }

  destroy(): void {
    this.still.forget();
    this.stays?.destroy();
  }

  show(process: number | null): void {
    this.process = process;
    this.root.hidden = process === null;
    if (process === null) return this.still.forget();
    const question = async () => {
      const details = await getDetails(process);
      return () => this.draw(details);
    };
    this.still.ask(String(process), question, 0);
  }

  private draw(details: Details): void {
    const { process: p } = details;
    const close = closeButton(() => this.events.closed());
    const known = facts([
      ["Begins in", p.entry === "" ? "not known" : p.entry],
      ["Parent", p.parent === 0 ? "not known" : this.link(p.parent, p.parent_name)],
      ["Lives", lifetime(p.start, p.stop, p.reason)],
      ["Runs", `${lasting(p.run)}, scheduled in ${count(p.ins)} ${p.ins === 1 ? "time" : "times"}`],
      ["Waits for a scheduler", lasting(p.runnable)],
      ["Waits", lasting(p.wait)],
      // What was not recorded is not 0.
      ...(this.about.totals.gc > 0 ? [["Collects garbage", lasting(p.gc)] as const] : []),
      ...(p.exiting > 0 ? [["Ends for", lasting(p.exiting)] as const] : []),
      ...(this.about.totals.moves > 0 ? [["Changed schedulers", count(p.moves)] as const] : []),
      ...(this.about.has_messages
        ? ([
            ["Received", messages(p.received, p.received_bytes)],
            ["Sent", messages(p.sent, p.sent_bytes)],
          ] as const)
        : []),
    ]);
    fill(
      this.root,
      card(
        p.name,
        { tools: [close], testid: "profile-process" },
        h(
          "div",
          { class: "profile-parts" },
          h("div", {}, known),
          listed(
            "Waits, by place",
            ["in", "times", "in all", "mean ± deviation"],
            details.waits
              .slice(0, ROWS)
              .map((wait) => [
                h("span", { class: "profile-long", title: wait.site }, wait.site),
                count(wait.count),
                lasting(wait.sum),
                `${lasting(Math.round(wait.mean))} ± ${lasting(Math.round(wait.deviation))}`,
              ]),
          ),
          this.peers("Waits for", details.waits_for, lasting, "in all"),
          this.peers("Is waited for by", details.waited_for_by, lasting, "in all"),
          this.peers("Sends to", details.sent_to, bytes, "bytes"),
          this.peers("Receives from", details.received_from, bytes, "bytes"),
          this.stays?.root ?? null,
        ),
      ),
    );
  }

  private peers(
    title: string,
    peers: readonly Peer[],
    format: (n: number) => string,
    unit: string,
  ): HTMLElement | null {
    return listed(
      title,
      ["process", "times", unit],
      peers
        .slice(0, ROWS)
        .map((peer) => [this.link(peer.process, peer.name), count(peer.count), format(peer.sum)]),
    );
  }

  private link(process: number, name: string): HTMLElement {
    return linkButton(name, () => this.events.opened(process));
  }
}

const messages = (n: number, size: number): string =>
  n === 0 ? "none" : `${count(n)} ${n === 1 ? "message" : "messages"}, ${bytes(size)}`;

function lifetime(start: number | null, stop: number | null, reason: string): string {
  const from = start === null ? "from before the recording" : `from ${lasting(start)}`;
  const to = stop === null ? "beyond its end" : `until ${lasting(stop)}`;
  return `${from} ${to}${reason === "" ? "" : `: ${reason}`}`;
}

function listed(
  title: string,
  head: readonly string[],
  rows: readonly (readonly (string | HTMLElement)[])[],
): HTMLElement | null {
  if (rows.length === 0) return null;
  return h("div", {}, h("h3", {}, title), list(head, rows));
}
