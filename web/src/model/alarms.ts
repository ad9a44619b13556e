// SPDX-License-Identifier: Apache-2.0
import type { Alarm } from "./protocol";

/** Alarms to look at: raised, neither acknowledged nor silenced. */
export const openAlarms = (alarms: readonly Alarm[]): readonly Alarm[] =>
  alarms.filter((alarm) => alarm.state === "raised" && !alarm.silenced);
