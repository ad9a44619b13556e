// SPDX-License-Identifier: Apache-2.0
// The fields of what an action takes.
import { h } from "../../lib/dom";
import { type Param, title } from "./model";

export interface Fields {
  root: HTMLElement;
  values(): Record<string, string | boolean>;
  focus(name: string): void;
}

export function fields(params: readonly Param[], given: Readonly<Record<string, string>>): Fields {
  const inputs = new Map(params.map((param) => [param.name, input(param, given[param.name])]));
  return {
    root: h(
      "div",
      { class: "action-fields" },
      ...params.map((param) =>
        h(
          "label",
          { class: param.type === "flag" ? "action-field action-flag" : "action-field" },
          h("span", { class: "action-label" }, title(param.name), param.required ? " *" : ""),
          inputs.get(param.name),
          h("span", { class: "muted" }, param.about),
        ),
      ),
    ),
    values: () =>
      Object.fromEntries(
        [...inputs].map(([name, one]) => [
          name,
          one instanceof HTMLInputElement && one.type === "checkbox" ? one.checked : one.value,
        ]),
      ),
    focus: (name) => inputs.get(name)?.focus(),
  };
}

function input(
  param: Param,
  given: string | undefined,
): HTMLInputElement | HTMLSelectElement | HTMLTextAreaElement {
  const name = { name: param.name, "data-testid": `arg-${param.name}` };
  const value = given ?? (param.default === null ? "" : String(param.default));
  if (param.type === "flag") {
    const box = h("input", { type: "checkbox", ...name });
    box.checked = value === "true";
    return box;
  }
  if (param.type === "word") {
    const select = h(
      "select",
      { class: "select", ...name },
      ...(param.words ?? []).map((word) => h("option", { value: word }, word.replaceAll("_", " "))),
    );
    if (value !== "") select.value = value;
    return select;
  }
  // Terms and expressions have more than a line.
  if ((param.most ?? 0) > 255) {
    const area = h("textarea", {
      class: "input action-text",
      rows: 3,
      spellcheck: "false",
      maxlength: param.most,
      ...name,
    });
    area.value = value;
    return area;
  }
  const field = h("input", {
    class: "input",
    type: param.type === "whole" ? "number" : "text",
    min: param.min,
    max: param.max,
    maxlength: param.most,
    autocomplete: "off",
    spellcheck: "false",
    ...name,
  });
  field.value = value;
  return field;
}
