// SPDX-License-Identifier: Apache-2.0
// Why so little is known of a node, and what to do for more: nothing starts by itself.
import { h } from "../../lib/dom";
import { probeOf } from "../../model/probe";
import type { TopologyNode } from "../../model/protocol";
import { note } from "../../ui/parts";

const ADVICE: Record<ReturnType<typeof probeOf>, readonly (HTMLElement | string)[]> = {
  tells: [],
  elsewhere: [
    "It has one set of monitoring nodes at a time: their dashboard shows all. When they have ended, it tells this one within a minute or so; nothing is to be done here.",
  ],
  unwanted: [
    "With ",
    h("code", {}, "probe => auto"),
    " the monitor uses a probe where there is one.",
  ],
  failed: [],
  absent: [
    "For a probe, a few modules that leave with the monitor, start that with ",
    h("code", {}, "bin/sderl mon --inject"),
    ", or type ",
    h("code", {}, "sderl_mon:set(#{inject => true})."),
    " on a monitoring node.",
  ],
};

/** Which, as the monitor says it: "... (NODE); ..." */
const whom = (why: string | null): string => {
  const found = /\(([^()]+)\)/.exec(why ?? "");
  return found === null ? "" : ` (${found[1]})`;
};

export function stockNote(node: TopologyNode): HTMLElement {
  const library = node.library === true;
  const probe = probeOf(node);
  const title =
    probe === "elsewhere"
      ? `The probe of this node tells other monitoring nodes${whom(node.why)}. `
      : library
        ? "The library runs here, without a probe. "
        : "Stock node. ";
  return note(
    h("strong", {}, title),
    library
      ? "So its groups and links are shown; names, reasons for links, kinds of traffic, registrations and traces are not known here. "
      : "So only what stock OTP reports is shown: no reasons for links, no kinds of traffic, no registrations, no tracing. ",
    ...ADVICE[probe].map((part) => (typeof part === "string" ? part : part.cloneNode(true))),
    probe === "absent" && library ? " Nodes whose release has sderl_mon run it themselves." : "",
    node.status !== "up" || node.why === null || probe === "absent" || probe === "elsewhere"
      ? ""
      : ` The monitor says: ${node.why}.`,
  );
}
