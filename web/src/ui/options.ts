// SPDX-License-Identifier: Apache-2.0
// The options of a field to choose one of many by.
import { children as fill, h } from "../lib/dom";
import { natural } from "../lib/natural";

/** All names and the chosen one, which may be gone, in natural order. */
export function names(all: readonly { name: string }[] | undefined, chosen: string): string[] {
  const found = new Set((all ?? []).map((one) => one.name));
  if (chosen !== "") found.add(chosen);
  return [...found].sort(natural);
}

/** Fills a field with the choice between all and each of the values. */
export function options(
  select: HTMLSelectElement,
  all: string,
  values: readonly string[],
  chosen: string,
  show = (value: string) => value,
): void {
  fill(
    select,
    h("option", { value: "" }, all),
    ...values.map((value) => h("option", { value }, show(value))),
  );
  select.value = chosen;
}
