// SPDX-License-Identifier: Apache-2.0
import type { Alarm } from "./protocol";

/** Those to look at: raised, and not silenced. */
export const openAlarms = (alarms: readonly Alarm[]): readonly Alarm[] =>
  alarms.filter((alarm) => alarm.state === "raised" && !alarm.silenced);
