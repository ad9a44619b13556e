// SPDX-License-Identifier: Apache-2.0
import type { Node, Operation } from "../../../../src/pages/profile/answers";

export const anOperation = (more: Partial<Operation> = {}): Operation => ({
  process: 1,
  by: "<0.5.0>",
  node: "a@h",
  operation: "s_group:leave/1",
  at: 0,
  took: 1,
  ok: true,
  text: "ok",
  arguments: "shop",
  group: "shop",
  nodes: null,
  name: null,
  of_process: null,
  got_group: null,
  got_nodes: null,
  ...more,
});

export const aNode = (more: Partial<Node> = {}): Node => ({
  number: 1,
  node: "a@h",
  first: 1,
  last: 2,
  scheduler: 0,
  online: 1,
  from: 0,
  to: 1,
  error: 0,
  shift: 0,
  groups: [],
  ...more,
});
