// SPDX-License-Identifier: Apache-2.0
// Which recording or samples a page shows: the one that this server is about (`bin/sderl prof open`), or one of the
// profiles of a running cluster, which the address names as `of`.
import { messageOf } from "../lib/format";
import type { Hello } from "../model/protocol";
import type { Change } from "../store/signals";
import type { Ctx, MountedPage } from "./ctx";
import { emptyState } from "./parts";
import { parseRoute, type PROFILES } from "./router";

const chosen = (): string => parseRoute(location.hash).query["of"] ?? "";

/** The path that answers what such a page asks. */
export const recordedPath = (part: (typeof PROFILES)[number]): string => {
  const of = chosen();
  return of === "" ? `api/v1/${part}` : `api/v1/profiles/${encodeURIComponent(of)}/${part}`;
};

/** Whether there is something to show. Before the server has said what it is, it is asked all the same: that saves an answer. */ const isRecorded =
  (hello: Hello | null, part: (typeof PROFILES)[number]): boolean =>
    hello === null ||
    (chosen() === ""
      ? (part === "profile" ? hello.profile : hello.samples) === true
      : hello.profiling === true);

/** What such a page shows, once its recording has answered. */
export interface Opened {
  routed(): void;
  destroy(): void;
}

interface RecordedOptions<T extends Opened> {
  part: (typeof PROFILES)[number];
  /** Asks the recording what it is; gives what shows it. */
  open(): Promise<() => T>;
  /** What is said where nothing is open, and where what is open does not answer. */
  nothing: readonly [title: string, text: string];
  failed: string;
}

/** A page of a recording: asks for it, and shows it as soon as it has answered. */
export class RecordedPage<T extends Opened> implements MountedPage {
  protected shown: T | null = null;
  private asking = false;
  private ended = false;

  constructor(
    private readonly root: HTMLElement,
    private readonly ctx: Ctx,
    private readonly options: RecordedOptions<T>,
  ) {
    void this.ask();
  }

  update(change: Change): void {
    if (change.has("hello") && this.shown === null) void this.ask();
    if (change.has("route")) this.shown?.routed();
  }

  destroy(): void {
    this.ended = true;
    this.shown?.destroy();
    this.root.replaceChildren();
  }

  private async ask(): Promise<void> {
    if (this.asking || this.ended) return;
    const { hello } = this.ctx.store;
    if (!this.isThere()) return this.root.replaceChildren(emptyState(...this.options.nothing));
    this.asking = true;
    try {
      const show = await this.options.open();
      if (!this.ended && this.shown === null) this.shown = show();
    } catch (error) {
      if (!this.ended && this.isThere())
        this.root.replaceChildren(emptyState(this.options.failed, messageOf(error)));
    }
    this.asking = false;
    // What the server shows was said meanwhile.
    if (hello === null && this.ctx.store.hello !== null && this.shown === null) void this.ask();
  }

  private isThere(): boolean {
    return isRecorded(this.ctx.store.hello, this.options.part);
  }
}
