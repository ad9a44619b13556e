// SPDX-License-Identifier: Apache-2.0
// The connection: one socket, opened again with a growing pause when it is lost.
import type { ServerMessage } from "../model/protocol";

/** What the store needs of a connection; the fixture's is another. */
export interface Transport {
  open(on: TransportEvents): void;
  send(message: object): boolean;
  /** Tries at once (a new token, the network is back). */
  retry(): void;
  close(): void;
}

export interface TransportEvents {
  opened(): void;
  message(message: ServerMessage): void;
  /** Lost, or never made; `refused` where the server answered and did not want us. */
  lost(why: { refused: boolean; ended?: Ended | null; retryMs: number }): void;
}

/** What has become of a token that held; `unreadable`: its file cannot be read now. */
export type Ended = "expired" | "revoked" | "unreadable";

/** The pause before try n (from 0): doubling from 250 ms to 8 s, +-20 % by `random` in 0..1. */
export function backoffMs(attempt: number, random: number): number {
  return Math.round(Math.min(8000, 250 * 2 ** Math.min(attempt, 10)) * (0.8 + 0.4 * random));
}

/** The token has expired; was revoked; tokens cannot be read. */
const SENT_AWAY: ReadonlyMap<number, Ended> = new Map<number, Ended>([
  [4001, "expired"],
  [4002, "revoked"],
  [4003, "unreadable"],
]);

export class SocketTransport implements Transport {
  private socket: WebSocket | null = null;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private attempt = 0;
  private closed = false;
  /** Of this token, until it holds again. */
  private unreadable: string | null = null;
  private on: TransportEvents | null = null;

  constructor(
    private readonly base: string,
    private readonly token: () => string | null,
  ) {}

  open(on: TransportEvents): void {
    this.on = on;
    this.connect();
    addEventListener("online", this.retry);
  }

  send(message: object): boolean {
    if (this.socket?.readyState !== WebSocket.OPEN) return false;
    this.socket.send(JSON.stringify(message));
    return true;
  }

  retry = (): void => {
    this.attempt = 0;
    if (this.socket?.readyState !== WebSocket.OPEN) this.connect();
  };

  close(): void {
    this.closed = true;
    clearTimeout(this.timer);
    removeEventListener("online", this.retry);
    this.socket?.close();
  }

  private connect(): void {
    clearTimeout(this.timer);
    if (this.socket) {
      this.socket.onopen = this.socket.onmessage = this.socket.onclose = null;
      this.socket.close();
    }
    const url = new URL("ws", this.base);
    url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
    const token = this.token();
    if (token !== null) url.searchParams.set("token", token);
    const socket = new WebSocket(url);
    this.socket = socket;
    socket.onopen = () => {
      this.attempt = 0;
      this.unreadable = null;
      this.on?.opened();
    };
    socket.onmessage = (event) => {
      if (typeof event.data !== "string") return;
      let message: unknown;
      try {
        message = JSON.parse(event.data);
      } catch {
        return;
      }
      if (typeof message === "object" && message !== null && "type" in message) {
        this.on?.message(message as ServerMessage);
      }
    };
    socket.onclose = (event) => {
      void this.ended(event.code);
    };
  }

  private async ended(code: number): Promise<void> {
    if (this.closed) return;
    const retryMs = backoffMs(this.attempt++, Math.random());
    this.timer = setTimeout(() => this.connect(), retryMs);
    // A browser does not say with what status an upgrade was refused: the API is asked.
    const ended = SENT_AWAY.get(code) ?? (await this.refusedByServer());
    if (ended === "unreadable") this.unreadable = this.token();
    this.on?.lost({ refused: ended !== undefined, ended: ended ?? null, retryMs });
  }

  /** Nothing where it was not; null where it was for another reason than the end of the token. */
  private async refusedByServer(): Promise<Ended | null | undefined> {
    try {
      const token = this.token();
      const response = await fetch(new URL("api/v1/session", this.base), {
        headers: token === null ? {} : { authorization: `Bearer ${token}` },
        signal: AbortSignal.timeout(4000),
      });
      if (response.status !== 401 && response.status !== 403) return undefined;
      const why = response.headers.get("www-authenticate") ?? "";
      if (/expired/.test(why)) return "expired";
      if (/revoked/.test(why)) return "revoked";
      // The server does not know a token whose file it cannot read.
      return token !== null && token === this.unreadable ? "unreadable" : null;
    } catch {
      return undefined;
    }
  }
}
