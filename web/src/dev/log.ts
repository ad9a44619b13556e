// SPDX-License-Identifier: Apache-2.0
// A made-up log: an event a second since ten minutes before the page was opened.
import type { LogEvent, LogLevel, LogPage } from "../model/protocol";

const SAYS: readonly (readonly [LogLevel, string, string])[] = [
  ["notice", "shop_cart:checkout/2", "order 4711 was placed"],
  ["warning", "shop_pool:grow/1", "the pool has no connection left: 20 wait"],
  [
    "error",
    "gen_server:error_info/8",
    "** Generic server shop_stock terminating\n** Last message in was {'$gen_cast',reload}\n** Reason for termination ==\n** {timeout,{gen_server,call,[shop_db,read]}}",
  ],
  ["notice", "shop_mail:sent/1", "sent to \u202egnp.ecnatsni\u0000 in 12 ms"],
  ["critical", "shop_disk:check/0", `no room: ${"/var/lib/shop/segments/".repeat(40)}`],
];

export function logPage(
  request: Record<string, unknown>,
  nodes: readonly { name: string }[],
  started: number,
): LogPage {
  const now = Date.now();
  const first = Math.floor(started / 1000) - 600;
  const number = (key: string, otherwise: number) => Number(request[key] ?? otherwise);
  const text = String(request["text"] ?? "").toLowerCase();
  const after = number("after", 0);
  const limit = number("limit", 100);
  const events: LogEvent[] = [];
  let id = Math.min(Math.floor(now / 1000), number("before", Infinity) - 1);
  for (; id > Math.max(first, after) && nodes.length > 0 && events.length < limit; id--) {
    const [level, mfa, says] = SAYS[(id * 7) % SAYS.length];
    const node = nodes[(id * 13) % nodes.length].name;
    const lost = id % 17 === 0 ? 250 : 0;
    const event: LogEvent = {
      id,
      t: id * 1000,
      node_t: id * 1000 - 40,
      level: lost > 0 ? "warning" : level,
      node,
      groups: [],
      mfa: lost > 0 ? "" : mfa,
      pid: lost > 0 ? "" : "<0.412.0>",
      text:
        lost > 0
          ? "250 events are left out here: 250 warning (more than the node may tell in a second)"
          : says,
      lost,
    };
    const passes =
      event.text.toLowerCase().includes(text) &&
      (request["node"] === undefined || request["node"] === node) &&
      (request["level"] === undefined || request["level"] === event.level);
    if (passes) events.push(event);
  }
  return {
    events,
    next: id > Math.max(first, after) && events.length > 0 ? events[events.length - 1].id : null,
    log: {
      events: { notice: 412, warning: 210, error: 130, critical: 8 },
      lost: [{ reason: "rate", level: "warning", events: 250 }],
      place: "memory",
      problem: null,
      range: [first * 1000, now],
      last: Math.floor(now / 1000),
      bytes: 812_345,
    },
  };
}
