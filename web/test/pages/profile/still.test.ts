// SPDX-License-Identifier: Apache-2.0
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { Still } from "../../../src/pages/profile/still";

/** What `set` needs of an element. */
const element = () => {
  const attributes = new Map<string, string>();
  return {
    getAttribute: (name: string) => attributes.get(name) ?? null,
    setAttribute: (name: string, value: string) => void attributes.set(name, value),
    removeAttribute: (name: string) => void attributes.delete(name),
  };
};

describe("what is asked when a part stands still", () => {
  const drawn: string[] = [];
  const failed: string[] = [];
  let root = element();
  let still: Still;
  /** A question that is answered when the test says so. */
  const question = (of: string) => {
    let answer = () => {};
    const asked = vi.fn(
      () => new Promise<() => void>((resolve) => (answer = () => resolve(() => drawn.push(of)))),
    );
    return { asked, answer: () => answer() };
  };
  const isBusy = () => root.getAttribute("aria-busy") !== null;

  beforeEach(() => {
    vi.useFakeTimers();
    drawn.length = 0;
    failed.length = 0;
    root = element();
    still = new Still(
      () => root as unknown as Element,
      (message) => failed.push(message),
    );
  });
  afterEach(() => void vi.useRealTimers());

  it("is asked at once first, and then only once of what moves", async () => {
    const [first, moved, last] = [question("first"), question("moved"), question("last")];
    still.ask("1", first.asked);
    await vi.advanceTimersByTimeAsync(0);
    expect(first.asked).toHaveBeenCalledOnce();
    expect(isBusy()).toBe(true);
    first.answer();
    await vi.advanceTimersByTimeAsync(0);
    expect(drawn).toEqual(["first"]);
    expect(isBusy()).toBe(false);
    still.ask("2", moved.asked);
    await vi.advanceTimersByTimeAsync(100);
    still.ask("3", last.asked);
    still.ask("3", last.asked);
    await vi.advanceTimersByTimeAsync(1000);
    expect(moved.asked).not.toHaveBeenCalled();
    expect(last.asked).toHaveBeenCalledOnce();
  });

  it("draws the answer to the last question alone", async () => {
    const [slow, fast] = [question("slow"), question("fast")];
    void still.now(slow.asked);
    void still.now(fast.asked);
    fast.answer();
    slow.answer();
    await vi.advanceTimersByTimeAsync(0);
    expect(drawn).toEqual(["fast"]);
    expect(isBusy()).toBe(false);
  });

  it("asks again after a failure, and draws nothing that was forgotten", async () => {
    const [gone, again] = [question("gone"), question("again")];
    still.ask("1", () => Promise.reject(new Error("no server")));
    await vi.advanceTimersByTimeAsync(0);
    expect(failed).toEqual(["no server"]);
    still.ask("1", gone.asked);
    await vi.advanceTimersByTimeAsync(1000);
    expect(gone.asked).toHaveBeenCalledOnce();
    still.forget();
    expect(isBusy()).toBe(false);
    gone.answer();
    still.ask("1", again.asked);
    await vi.advanceTimersByTimeAsync(1000);
    again.answer();
    await vi.advanceTimersByTimeAsync(0);
    expect(drawn).toEqual(["again"]);
  });
});
