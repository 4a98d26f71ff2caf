// Which columns a table of trials shows, in which order, and what stands above them. Pure.
import type {Parameter, Study} from "../contract";

export interface ColumnChoice {
  /** All that can be shown. */
  all: string[];
  /** What is shown, in order. */
  shown: string[];
}

const LABELS: Record<string, string> = {
  number: "#", batch_size: "batch", best_step: "best step", slot_seconds: "slot-s", created_at: "created",
  started_at: "started", ended_at: "ended", parent: "clone of", parent_step: "from step",
};

export const WIDTHS: Record<string, number> = {
  number: 84, state: 104, value: 92, best_step: 84, step: 72, slots: 64, promise: 116, goodput: 84, batch_size: 72,
  slot_seconds: 84, created_at: 150, started_at: 150, ended_at: 150, reason: 320, resizes: 76, restarts: 80, pinned: 74,
  node: 120, infeasible: 92,
};

const TIMES = new Set(["created_at", "started_at", "ended_at"]);
const USUAL_OF_POOL = ["state", "value", "step", "slots", "promise", "goodput", "batch_size"];
const USUAL_OF_CLIENTS = ["state", "value", "step"];
/** Of studies that have something to keep, or clones. */
const WHERE_TOLD = ["infeasible", "parent"];
const MOST_PARAMETERS = 8;
const LEAST_WIDTH = 84;
const MOST_WIDTH = 220;
const LETTER = 8;

export function isTime(column: string): boolean {
  return TIMES.has(column);
}

/** What the objective of that place, from 0, is called. */
export function objectiveName(study: Pick<Study, "metric" | "metrics" | "directions">, place: number): string {
  return study.metrics[place] ?? (study.directions.length > 1 ? `value ${place + 1}` : study.metric || "value");
}

export function objectiveNames(study: Pick<Study, "metric" | "metrics" | "directions">): string[] {
  return study.directions.map((_, place) => objectiveName(study, place));
}

export function labelOf(column: string, metric: string, objectives: readonly string[] = []): string {
  const further = /^values:(\d+)$/.exec(column);
  if (further !== null) return objectives[Number(further[1])] ?? `value ${Number(further[1]) + 1}`;
  if (column === "value" && objectives.length > 1) return objectives[0] ?? "value 1";
  if (column === "value" && metric !== "") return metric;
  const label = LABELS[column];
  if (label !== undefined) return label;
  return /^[pu]:/.test(column) ? column.slice(2) : column;
}

export function widthOf(column: string, label: string): number {
  return WIDTHS[column] ?? Math.max(LEAST_WIDTH, Math.min(MOST_WIDTH, 28 + LETTER * label.length));
}

/** The number of a trial is always first, and no choice. `names` are the columns that are there. */
export function usualColumns(kind: "pool" | "ask" | "queue", parameters: readonly Pick<Parameter, "name">[], objectives: number,
                             names: readonly string[] = []): string[] {
  const values = Array.from({length: Math.max(0, objectives - 1)}, (_, i) => `values:${i + 1}`);
  const [state, value, ...rest] = kind === "ask" ? USUAL_OF_CLIENTS : USUAL_OF_POOL;
  const told = WHERE_TOLD.filter((name) => names.includes(name));
  return [state!, value!, ...values, ...told, ...rest, ...parameters.slice(0, MOST_PARAMETERS).map(({name}) => `p:${name}`),
          ...(kind === "ask" ? [] : ["slot_seconds"]), "reason"];
}

/** Names may hold commas. */
export function formatColumns(columns: readonly string[]): string {
  return columns.map((column) => column.replace(/[%,]/g, encodeURIComponent)).join(",");
}

export function parseColumns(text: string): string[] {
  return [...new Set(text.split(",").filter((part) => part !== "").map(decoded))];
}

function decoded(text: string): string {
  return text.replace(/%25|%2C/gi, (sign) => (sign === "%25" ? "%" : ","));
}

/** What an address names, as far as it is there. */
export function columnsOf(text: string, usual: readonly string[], names: readonly string[]): ColumnChoice {
  const all = [...usual, ...names.filter((name) => !usual.includes(name) && name !== "id" && name !== "number")];
  const wanted = text === "" ? usual : parseColumns(text);
  return {all, shown: wanted.filter((name) => all.includes(name))};
}

export function moved(columns: readonly string[], name: string, by: number): string[] {
  const from = columns.indexOf(name);
  const to = from + by;
  if (from < 0 || to < 0 || to >= columns.length) return [...columns];
  const out = columns.filter((column) => column !== name);
  out.splice(to, 0, name);
  return out;
}

export function toggled(columns: readonly string[], name: string): string[] {
  return columns.includes(name) ? columns.filter((column) => column !== name) : [...columns, name];
}
