// Which changes of other trials a trial's page has to show, since they are clones of it or may be. Pure.

import type {Changed, TrialAnswer} from "../../contract";

export class CloneNews {
  private newest: number;
  private waiting: ReadonlySet<number> = new Set();

  constructor(private readonly study: number, trial: number) {
    this.newest = trial;
  }

  /** What the page shows now. */
  show(clones: TrialAnswer["clones"]): void {
    this.waiting = new Set(clones.filter(({step}) => step === null).map(({trial_id}) => trial_id));
  }

  /** Whether a trial is newer than all of which events have told, or a clone that was to get its checkpoint has changed. */
  take(event: Changed): boolean {
    let some = false;
    for (const {id, study_id, number} of event.trials) {
      if (study_id !== this.study) continue;
      if (number > this.newest || this.waiting.has(id)) some = true;
      this.newest = Math.max(this.newest, number);
    }
    return some;
  }
}
