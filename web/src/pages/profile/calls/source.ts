// SPDX-License-Identifier: Apache-2.0
// The source text of a function, as it is where the recording was opened.
import { h } from "../../../lib/dom";
import { dialog } from "../../../ui/parts";
import { getSource, type Source } from "../answers";
import { messageOf } from "../../../lib/format";

/** A button that shows it. */
export const sourceButton = (
  function_: number,
  text: string,
  failed: (message: string) => void,
  kind = "profile-link",
): HTMLElement =>
  h(
    "button",
    {
      type: "button",
      class: kind,
      title: `Source of ${text}`,
      onclick: (event: Event) =>
        void showSource(function_, failed, (event.currentTarget as Element).closest("section")),
    },
    text,
  );

let asked = 0;

/** Shows it, unless another was asked for meanwhile, or the page has gone with the card. */
async function showSource(
  function_: number,
  failed: (message: string) => void,
  card: Element | null,
): Promise<void> {
  const mine = (asked += 1);
  const isWanted = () => mine === asked && card?.isConnected !== false;
  try {
    const source = await getSource(function_);
    if (!isWanted()) return;
    const shown = dialog(source.function, ...parts(source));
    shown.classList.add("profile-source");
    shown.querySelector(".is-function")?.scrollIntoView({ block: "center" });
  } catch (error) {
    if (isWanted()) failed(messageOf(error));
  }
}

function parts(source: Source): HTMLElement[] {
  const { why, note, file, version } = source;
  if (why !== null) return [h("p", { class: "note" }, `There is no source: ${why}.`)];
  return [
    h("p", { class: "muted profile-file" }, file ?? ""),
    note === null
      ? h("p", { class: "muted" }, VERSIONS[version])
      : h("p", { class: "note" }, `${note}.`),
    h(
      "div",
      { class: "profile-code", role: "region", "aria-label": "Source", tabindex: 0 },
      ...source.lines.map((text, i) => line(source.first + i, text, source)),
    ),
  ];
}

function line(n: number, text: string, { line: from, last: to }: Source): HTMLElement {
  const mine = from !== null && n >= from && n <= (to ?? from);
  return h(
    "div",
    {
      class: `source-line ${mine ? "is-mine" : ""} ${n === from ? "is-function" : ""}`.trim(),
    },
    h("span", { class: "num", "aria-hidden": "true" }, n),
    h("code", {}, text.replaceAll("\t", "        ")),
  );
}

const VERSIONS: Record<Source["version"], string> = {
  same: "The version that was recorded.",
  some: "The version that was recorded on some of the nodes.",
  other: "Another version was recorded.",
  unknown: "As it is here now.",
};
