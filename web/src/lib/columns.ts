// SPDX-License-Identifier: Apache-2.0
// Columns of numbers, as all tables have them: at the right, with a unit, a dash where nothing is known.
import type { Child } from "./dom";
import type { Maybe } from "./format";
import type { Column } from "./table";

export interface Measure {
  width: string;
  /** On a narrow screen. */
  narrow?: string;
  hint?: string;
  /** Left out on a narrow screen. */
  wide?: boolean;
}

export function measure<R, V extends Maybe>(
  key: string,
  label: string,
  value: (row: R) => V,
  show: (value: V) => Child,
  more: Measure,
): Column<R> {
  return { key, label, value, show: (row) => show(value(row)), numeric: true, ...more };
}
