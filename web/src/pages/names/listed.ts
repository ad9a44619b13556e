// SPDX-License-Identifier: Apache-2.0
import { filtered } from "../../lib/table-model";
import type { NameRow } from "../../model/protocol";

/** What the server lists; `more`: not all of it. */
export interface Listed {
  names: NameRow[];
  total: number;
  more: boolean;
}

/** Those with all the words anywhere in them. */
export const containing = ({ names, total }: Listed, words: string): Listed => ({
  names: [...filtered(names, words, (row) => row.name)],
  total,
  more: false,
});
