// SPDX-License-Identifier: Apache-2.0
// Questions in flight, found again by the reference in the answer.
import type { Op, Operations, ReplyError } from "../model/protocol";

export class RequestError extends Error {
  constructor(
    readonly code: string,
    message: string,
  ) {
    super(message);
    this.name = "RequestError";
  }
}

interface Waiting {
  resolve(result: unknown): void;
  reject(error: RequestError): void;
  timer: ReturnType<typeof setTimeout>;
}

export class Requests {
  private next = 1;
  private readonly waiting = new Map<number, Waiting>();

  constructor(
    private readonly send: (message: object) => boolean,
    private readonly timeoutMs = 10_000,
  ) {}

  ask<O extends Op>(op: O, args: Operations[O][0]): Promise<Operations[O][1]> {
    const ref = this.next++;
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        this.waiting.delete(ref);
        reject(new RequestError("timeout", `${op}: no answer within ${this.timeoutMs / 1000} s`));
      }, this.timeoutMs);
      this.waiting.set(ref, { resolve: resolve as (result: unknown) => void, reject, timer });
      if (!this.send({ ...args, ref, op })) {
        this.drop(ref)?.reject(
          new RequestError("disconnected", "There is no connection to the server"),
        );
      }
    });
  }

  answered(ref: number, ok: boolean, result: unknown, error?: ReplyError): void {
    const waiting = this.drop(ref);
    if (ok) waiting?.resolve(result);
    else
      waiting?.reject(
        new RequestError(error?.code ?? "error", error?.message ?? "The server refused"),
      );
  }

  failAll(message: string): void {
    for (const ref of [...this.waiting.keys()]) {
      this.drop(ref)?.reject(new RequestError("disconnected", message));
    }
  }

  private drop(ref: number): Waiting | undefined {
    const waiting = this.waiting.get(ref);
    if (waiting) {
      clearTimeout(waiting.timer);
      this.waiting.delete(ref);
    }
    return waiting;
  }
}
