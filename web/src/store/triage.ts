// SPDX-License-Identifier: Apache-2.0
// What was acknowledged and muted in this browser, which keeps it and tells nobody.
import { type State, open, parseTriage, pruned, stateOf, type Triage } from "../model/triage";
import type { Finding } from "../model/protocol";

const KEY = "sderl.triage";

export class TriageStore {
  private triage: Triage;

  constructor(
    private readonly changed: () => void,
    private readonly keep: Pick<Storage, "getItem" | "setItem"> | null = storage(),
  ) {
    this.triage = parseTriage(this.read());
  }

  stateOf(finding: Finding): State {
    return stateOf(this.triage, finding, Date.now());
  }

  open(findings: readonly Finding[]): Finding[] {
    return open(this.triage, findings, Date.now());
  }

  acknowledge({ id, since }: Finding): void {
    this.write({ ...this.others(id), [id]: { acknowledged: since } });
  }

  mute({ id }: Finding, until: number): void {
    this.write({ ...this.others(id), [id]: { muted: until } });
  }

  reopen({ id }: Finding): void {
    this.write(this.others(id));
  }

  private others(id: string): Triage {
    return Object.fromEntries(Object.entries(this.triage).filter(([other]) => other !== id));
  }

  private write(triage: Triage): void {
    this.triage = pruned(triage, Date.now());
    try {
      this.keep?.setItem(KEY, JSON.stringify(this.triage));
    } catch {
      // Until the page is closed, then.
    }
    this.changed();
  }

  private read(): string | null {
    try {
      return this.keep?.getItem(KEY) ?? null;
    } catch {
      return null;
    }
  }
}

/** A browser may keep nothing, and say so by throwing. */
function storage(): Storage | null {
  try {
    return localStorage;
  } catch {
    return null;
  }
}
