// SPDX-License-Identifier: Apache-2.0
// A request with what its nodes say.
import type { Ctx } from "../../ui/ctx";
import { h, type Child } from "../../lib/dom";
import { facts, nodeLink, closeButton } from "../../ui/parts";
import { clock } from "../../lib/format";
import {
  columns,
  next,
  type NodeAnswer,
  parts,
  type Request,
  shown,
  title,
  type Value,
} from "./model";

export interface Hooks {
  stop(): void;
  close(): void;
  /** An action with one argument, on the node of the row. */
  next(action: string, arg: string, value: string, node: string): void;
}

export function answer(ctx: Ctx, request: Request, hooks: Hooks): HTMLElement {
  const nodes = Object.entries(request.nodes);
  return h(
    "section",
    { "aria-label": `Request ${request.id}`, "data-testid": "answer", "data-state": request.state },
    h(
      "div",
      { class: "row action-head" },
      h("h3", {}, title(request.action)),
      h("span", { class: `request-state request-${request.state}` }, request.state),
      h("span", { class: "muted num" }, progress(nodes.map(([, one]) => one))),
      h(
        "a",
        {
          href: ctx.href("audit", null, { request: request.id }),
          class: "place",
          "data-keep": "audit",
        },
        "audit log",
      ),
      h("span", { class: "spring" }),
      request.state === "running"
        ? h(
            "button",
            {
              type: "button",
              class: "button",
              click: hooks.stop,
              "data-keep": "stop",
              "data-testid": "stop",
            },
            "Stop",
          )
        : null,
      closeButton(hooks.close, { "data-keep": "close" }),
    ),
    ...nodes.map(([node, one]) => nodePart(ctx, node, one, hooks)),
  );
}

function progress(nodes: readonly NodeAnswer[]): string {
  const done = nodes.filter((one) => one.state === "ok").length;
  const failed = nodes.filter((one) => one.state === "failed").length;
  return `${done} of ${nodes.length} done${failed > 0 ? `, ${failed} failed` : ""}`;
}

function nodePart(ctx: Ctx, node: string, one: NodeAnswer, hooks: Hooks): HTMLElement {
  return h(
    "div",
    { class: "action-node" },
    h(
      "div",
      { class: "row" },
      nodeLink(ctx, node),
      h("span", { class: `request-state request-${one.state}` }, one.state),
      one.ms === null ? null : h("span", { class: "muted num" }, `${one.ms} ms`),
    ),
    one.error === null ? null : h("p", { class: "problem" }, one.error),
    one.said.length === 0
      ? null
      : h(
          "ol",
          { class: "action-said", tabindex: "0", "aria-label": `What ${node} told` },
          ...one.said.map((said) =>
            h(
              "li",
              {},
              h("span", { class: "muted num" }, clock(said.at)),
              " ",
              h("span", { class: "muted" }, said.pid),
              " ",
              said.text,
            ),
          ),
          one.said_total > one.said.length
            ? h("li", { class: "muted" }, `and ${one.said_total - one.said.length} more`)
            : null,
        ),
    one.state === "ok" ? result(node, one.result, hooks) : null,
  );
}

function result(node: string, value: Value, hooks: Hooks): HTMLElement {
  const { facts: some, rows } = parts(value);
  return h(
    "div",
    { class: "action-parts" },
    some.length === 0 ? null : facts(some.map(([key, one]) => [title(key), fact(key, one)])),
    ...rows.map(([key, all]) => rowsTable(node, key, all, hooks)),
  );
}

/** Texts of several lines, and lists of them, as they are. */
function fact(key: string, value: Value): Child {
  const lines = Array.isArray(value) && value.length > 0;
  const text = lines ? value.map((one) => shown(key, one)).join("\n") : shown(key, value);
  return text.includes("\n") || text.length > 120
    ? h("pre", { class: "action-pre", tabindex: "0", "aria-label": title(key) }, text)
    : text;
}

function rowsTable(
  node: string,
  key: string,
  rows: Record<string, Value>[],
  hooks: Hooks,
): HTMLElement {
  const names = columns(rows);
  const numeric = (name: string) => rows.every((row) => typeof row[name] === "number");
  return h(
    "div",
    { class: "action-table", tabindex: "0", role: "region", "aria-label": title(key) },
    h(
      "table",
      { class: "table" },
      h("caption", { class: "visually-hidden" }, title(key)),
      h(
        "thead",
        {},
        h(
          "tr",
          {},
          ...names.map((name) =>
            h("th", { scope: "col", class: numeric(name) ? "num" : null }, title(name)),
          ),
        ),
      ),
      h(
        "tbody",
        {},
        ...rows.map((row) =>
          h(
            "tr",
            {},
            ...names.map((name, i) => {
              const text = shown(name, row[name] ?? null);
              const further = i === 0 ? next(key, row) : null;
              return h(
                "td",
                { class: numeric(name) ? "num" : null, title: text.length > 40 ? text : null },
                further === null
                  ? text
                  : h(
                      "button",
                      {
                        type: "button",
                        class: "link-button",
                        title: title(further[0]),
                        click: () => hooks.next(further[0], further[1], further[2], node),
                        "data-keep": `${node} ${key} ${further[2]}`,
                      },
                      text,
                    ),
              );
            }),
          ),
        ),
      ),
    ),
  );
}
