// What the service answers below /api/view, version 1. Times are seconds since 1970; null: not known.

export type Role = "administer" | "submit" | "view";
export type TrialState = string;
export type StudyState = string;
export type Direction = "minimize" | "maximize";

export interface Versioned {
  version: number;
  revision: number;
  /** Of the service: revisions of another one do not compare. */
  incarnation: string;
}

export interface SlotUse {
  slot: number;
  trial_id: number;
  trial: number | null;
  study_id: number | null;
  /** Slots at which its trial is pinned; null: it is not. */
  pinned: number | null;
}

export interface PoolNode {
  id: number;
  name: string;
  up: boolean;
  slots: number;
  held: number;
  gpu_type: string;
  spot: boolean;
  draining: boolean;
  drain_until: number | null;
  price_per_hour: number | null;
  warnings: string[];
  slot_use: SlotUse[];
}

export interface Pool {
  slots: number;
  held: number;
  /** null: each study has its own. */
  policy: string | null;
  waiting_slots: number;
  nodes: PoolNode[];
}

export interface TrialCounts {
  waiting: number;
  running: number;
  paused: number;
  complete: number;
  pruned: number;
  failed: number;
}

export interface LastDecision {
  at: number;
  trial: number | null;
  kind: string;
  from_slots: number;
  to_slots: number;
  reason: string;
}

export interface StudyRow {
  id: number;
  name: string;
  state: StudyState;
  kind: "pool" | "ask" | "queue";
  /** null: its trials have none. */
  metric: string | null;
  direction: Direction;
  directions: Direction[];
  trials: TrialCounts;
  total: number | null;
  best: {trial_id: number; trial: number; value: number | null} | null;
  created_at: number;
  ended_at: number | null;
  elapsed_s: number;
  remaining_s: number | null;
  slots: number;
  share: number;
  slot_seconds: number;
  spent: number | null;
  last_decision: LastDecision | null;
  notices: string[];
  /** Trials that keep to their constraints and those that break one, of those that have told; null: they have none. */
  kept: {keep: number; breaks: number} | null;
}

export interface Alert {
  /** null: it holds now. */
  at: number | null;
  level: "error" | "warning";
  text: string;
  study_id: number | null;
  study: string | null;
  trial_id: number | null;
  trial: number | null;
}

export interface Overview extends Versioned {
  incarnation: string;
  now: number;
  service: {version: string; http_base: string | null};
  role: Role;
  pool: Pool;
  studies: StudyRow[];
  alerts: Alert[];
}

export interface Parameter {
  name: string;
  kind: "float" | "int" | "choice";
  low: number | null;
  high: number | null;
  log: boolean;
  choices: string[];
}

export interface LikeStudy {
  /** Its name: it may be there no more. */
  study: string;
  /** So many trials are learnt from, of those that had ended then, and of those that were within the search space. */
  trials: number;
  ended: number;
  within: number;
}

export interface Study extends Versioned {
  id: number;
  name: string;
  state: StudyState;
  definition: unknown;
  parameters: Parameter[];
  /** null: its trials have none. */
  metric: string | null;
  direction: Direction;
  directions: Direction[];
  /** Names of several metrics, one a direction; empty where there is one, or clients run the trials. */
  metrics: string[];
  /** On figures that its trials tell, as "latency_ms <= 20". */
  constraints: string[];
  policy: string;
  sampler: string;
  pruner: string;
  /** The study from which its sampler learns, too; null: none. */
  like: LikeStudy | null;
  limits: {trials: number | null; time_s: number | null; cost: number | null; target: number | null};
  created_at: number;
  ended_at: number | null;
  /** Why it ended as it did, where there is more to say than its state. */
  reason: string;
  note: string;
  attributes: {user: Record<string, unknown>; system: Record<string, unknown>};
}

/** Columns marked with a star in the contract hold indexes into `words` of their name; null: no text. */
export interface TrialColumns extends Versioned {
  from: number;
  rows: number;
  total: number;
  columns: Record<string, (number | null)[]>;
  words: Record<string, string[]>;
  /** With `changed_since`: false where more changed than the log remembers. */
  complete?: boolean;
}

export interface Curve {
  trial_id: number;
  trial: number;
  state: TrialState;
  /** Whether it breaks a constraint; null: it has none, or has not told yet. */
  infeasible: boolean | null;
  /** So many values stand behind it. */
  points: number;
  x: number[];
  y: (number | null)[];
  promise: (number | null)[] | null;
  goodput: (number | null)[] | null;
  batch_size: (number | null)[] | null;
}

export interface Curves extends Versioned {
  x: string;
  /** null: its trials have none. */
  metric: string | null;
  curves: Curve[];
}

export interface Spans {
  node: number[];
  slot: number[];
  from: number[];
  to: (number | null)[];
  trial_id: number[];
  trial: number[];
  study: number[];
  /** How many were merged, because they were narrower than a pixel. */
  count: number[];
}

export interface LaneNode {
  name: string;
  slots: number;
  gpu_type: string;
  up: boolean;
}

export interface LaneMark {
  at: number;
  kind: string;
  trial_id: number | null;
  trial: number | null;
  study: number | null;
  node: number | null;
  reason: string;
  /** So many of one kind lie under one pixel. */
  count?: number;
}

export interface Lanes extends Versioned {
  now: number;
  from: number;
  to: number;
  nodes: LaneNode[];
  spans: Spans;
  studies: {id: number; name: string}[];
  marks: LaneMark[];
  use: {at: number[]; held: number[]; slots: number[]};
}

export interface DecisionFigures {
  promise: number | null;
  speedup_before: number | null;
  speedup_after: number | null;
  gain: number | null;
  resize_cost_s: number | null;
  /** Of trials that are there no more, the number and the study are null. */
  from: {trial_id: number; trial: number | null; study_id: number | null; slots: number; promise: number | null}[];
}

export interface Decision {
  cursor: string | number;
  at: number;
  study_id: number;
  study: string;
  trial_id: number | null;
  trial: number | null;
  kind: string;
  from_slots: number;
  to_slots: number;
  reason: string;
  figures: DecisionFigures | null;
}

export interface Decisions extends Versioned {
  next: string | number | null;
  decisions: Decision[];
}

export interface TrialSpan {
  from: number;
  to: number | null;
  slots: {node: string; slot: number}[];
}

export interface Replica {
  node: string;
  slot: number;
  /** null: a program that knows of none. */
  rank: number | null;
  pid: number | null;
  slow: number | null;
}

export type Parameters = Record<string, string | number | boolean | null>;

/** Where the training of a clone comes from. */
export interface Lineage {
  parent_id: number;
  parent: number;
  /** The first of its line, which began afresh. */
  founder_id: number;
  founder: number;
  /** Of the checkpoint with which it began; null: it waits for it, or has ended without it. */
  step: number | null;
  fingerprint: string;
  /** Its own parameters where its parent has others, and what these are there. */
  set: Parameters;
  was: Parameters;
}

export interface Trial {
  id: number;
  number: number;
  study_id: number;
  study: string;
  state: TrialState;
  value: number | null;
  /** Names of several metrics; empty where there is one, or clients run the trials. */
  metrics: string[];
  /** Of several metrics the newest ones, else the final ones. */
  values: (number | null)[];
  /** Whether it breaks a constraint; null: it has none, or has not told yet. */
  infeasible: boolean | null;
  /** Those of the study, with what it has told last; null: nothing yet. */
  constraints: {text: string; figure: number | null; broken: boolean | null}[];
  reason: string;
  last_output: string;
  created_at: number;
  started_at: number | null;
  ended_at: number | null;
  slots: number;
  promise: number | null;
  goodput: number | null;
  batch_size: number | null;
  throughput: number | null;
  learning_rate: number | null;
  noise_scale: number | null;
  step: number | null;
  slot_seconds: number;
  pinned: number | null;
  parameters: Parameters;
  lineage: Lineage | null;
  user_attributes: Record<string, unknown>;
  system_attributes: Record<string, unknown>;
  note: string;
  spans: TrialSpan[];
  replicas: Replica[];
  ranks: number | null;
  /** null: not known. */
  log_path: string | null;
}

export interface TrialAnswer extends Versioned {
  trial: Trial;
  decisions: Decision[];
  /** Trials that began with a checkpoint of it, by number. */
  clones: {trial_id: number; trial: number; state: TrialState; step: number | null}[];
}

// Events of /api/view/events.

export interface Hello {
  version: number;
  incarnation: string;
  revision: number;
  now: number;
}

export interface Changed {
  revision: number;
  now: number;
  studies: number[];
  trials: {id: number; study_id: number; number: number}[];
  more?: boolean;
  pool: boolean;
  decisions: boolean;
}

/** Reports, as columns of one length. */
export interface Values {
  trial_id: number[];
  study_id: number[];
  number: number[];
  step: number[];
  value: (number | null)[];
  at: number[];
  batch_size: (number | null)[];
  promise: (number | null)[];
  goodput: (number | null)[];
}

/** Running trials as they are now, as columns of one length. */
export interface LiveFigures {
  now: number;
  trial_id: number[];
  slots: number[];
  promise: (number | null)[];
  goodput: (number | null)[];
  batch_size: (number | null)[];
  throughput: (number | null)[];
}

export interface Importances {
  version: number;
  study_id: number;
  complete: number;
  objectives: {direction: Direction; parameters: {name: string; importance: number | null}[]}[];
}

/** Complete trials than which no other is better in every objective. */
export interface Front {
  version: number;
  study_id: number;
  complete: number;
  trials: {trial_id: number; trial: number; values: (number | null)[]}[];
}

/** What share of the complete trials has at most which value. */
export interface Distribution {
  version: number;
  study_id: number;
  complete: number;
  objectives: {direction: Direction; value: number[]; share: number[]}[];
}

/** When which complete trial was better than all before it. */
export interface BestOverTime {
  version: number;
  study_id: number;
  complete: number;
  objectives: {direction: Direction; at: number[]; trial_id: number[]; value: number[]}[];
}

/** By name; null: unknown. */
export type Figures = Record<string, number | null>;

export interface SimulatedRun {
  policy: string;
  pruner: string;
  slots: number;
  figures: Figures;
  /** Times are seconds from its start. */
  lanes: Lanes;
}

export interface Simulation {
  version: number;
  id: number;
  study: string;
  state: "running" | "done" | "failed";
  policy: string;
  slots: number;
  nodes: number;
  error: string | null;
  recorded: Figures | null;
  /** As it was, and under the other policy. */
  runs: SimulatedRun[];
  caveats: string[];
}
