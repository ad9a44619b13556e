// SPDX-License-Identifier: Apache-2.0

const collator = new Intl.Collator("en", { numeric: true });

/** The order of names as people count: n2 before n10. */
export const natural = (a: string, b: string): number => collator.compare(a, b);

export const byName = (a: { name: string }, b: { name: string }): number => natural(a.name, b.name);
