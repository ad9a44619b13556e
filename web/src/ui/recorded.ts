// SPDX-License-Identifier: Apache-2.0
// Which recording or samples a page shows: the one that this server is about (`bin/sderl prof open`), or one of the
// profiles of a running cluster, which the address names as `of`.
import type { Hello } from "../model/protocol";
import { parseRoute, type PROFILES } from "./router";

const chosen = (): string => parseRoute(location.hash).query["of"] ?? "";

/** The path that answers what such a page asks. */
export const recordedPath = (part: (typeof PROFILES)[number]): string => {
  const of = chosen();
  return of === "" ? `api/v1/${part}` : `api/v1/profiles/${encodeURIComponent(of)}/${part}`;
};

/** Whether there is something to show. Before the server has said what it is, it is asked all the same. */
export const isRecorded = (hello: Hello | null, part: (typeof PROFILES)[number]): boolean =>
  hello === null ||
  (chosen() === ""
    ? (part === "profile" ? hello.profile : hello.samples) === true
    : hello.profiling === true);
