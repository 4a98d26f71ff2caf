// What a file with a study's record holds (RecordJson in tuner/web/view, and tuner/cli/report).

import type {Decisions, Figures, Lanes, Overview, Study, Trial, TrialColumns} from "../contract";

/** Whole numbers as the first one and what each adds to the one before; a second one alone is what all add. */
export type Steps = number[];

export interface RecordedCurve {
  trial_id: number;
  trial: number;
  state: string;
  infeasible?: boolean;
  /** So many values stand behind it. */
  points: number;
  step?: Steps;
  /** Milliseconds since 1970. */
  at_ms?: Steps;
  /** Slot-milliseconds held until then. */
  slot_ms?: Steps;
  y?: (number | null)[];
  progress?: (number | null)[];
  promise?: (number | null)[];
  goodput?: (number | null)[];
  batch_size?: (number | null)[];
}

export interface Reliability {
  count: number;
  calibration_error: number;
  brier: number;
  base_brier: number;
  bins: {low: number; high: number; count: number; predicted: number; happened: number}[];
}

export interface Sweep {
  /** null: no group has reported a number. */
  target: number | null;
  target_given: boolean;
  /** The first is the heading. */
  rows: string[][];
  groups: {rule: string; batch: string; values: (number | null)[]; seconds: number[]}[];
}

/** What a record tells beside what a service answers. */
export interface Facts {
  use: {slots: number; overall: number; until_last_start: number; grown: number; shrunk: number};
  checkpoint: string | null;
  notice: string | null;
  /** The first is the heading; none: no prices are known. */
  payments: string[][];
  reliability: Reliability | null;
  sweep: Sweep | null;
}

export interface ComparedRun {
  policy: string;
  pruner: string;
  slots: number;
  figures: Figures;
  remarks: string[];
  /** Times are seconds from its start; null: it is not known who held what. */
  lanes: Lanes | null;
}

/** A simulation's runs, and the figures of the study that was simulated. */
export interface Comparison {
  recorded: Figures | null;
  runs: ComparedRun[];
}

export interface StudyRecord {
  version: number;
  /** So many decisions there were; the record has the newest. */
  decided: number;
  overview: Overview;
  study: Study;
  trials: TrialColumns;
  lanes: Lanes;
  decisions: Decisions;
  curves: RecordedCurve[];
  /** Those of the second metric and of further ones. */
  other_curves?: RecordedCurve[][];
  facts: Trial[];
  /** What is worked out of its complete trials, by "what". */
  analyses: Record<string, unknown>;
  report: Facts;
  comparison?: Comparison;
}
