// Which rows of a store a table shows, and in which order.

import type {Condition} from "./conditions";
import type {Sort, TrialsStore} from "./trials_store";

/** Where trials have changed, as they do all the time, only rows that meet the conditions are sorted. Where the conditions alone have, as
    while a range is drawn, all rows are sorted once and kept. */
export class ShownRows {
  private version = -1;
  private sort: Sort | null = null;
  private all: Uint32Array | null = null;

  constructor(private readonly trials: TrialsStore) {}

  of(conditions: readonly Condition[], sort: Sort): Uint32Array {
    if (this.version !== this.trials.version || this.sort !== sort) {
      this.version = this.trials.version;
      this.sort = sort;
      this.all = null;
      if (conditions.length > 0) return this.trials.sorted(sort, this.trials.filter(conditions));
    }
    this.all ??= this.trials.sorted(sort);
    return this.trials.filter(conditions, this.all);
  }
}
