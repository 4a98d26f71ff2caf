// A column of the table as an axis: where its values are on it, and which filter a part of it is. Pure.

import type {Parameter} from "../../../contract";
import {number, visible} from "../../../format";
import {type Condition, formatBound} from "../../../table/conditions";
import type {TrialsStore} from "../../../table/trials_store";

export interface ColumnAxis {
  column: string;
  label: string;
  /** From 0 (below) to 1 (above), by row; NaN: it has no value. */
  positions: Float64Array;
  /** What stands at places of the axis. */
  ticks: {at: number; text: string}[];
  /** The filter that a part of the axis is; null: there is nothing in it. */
  conditionOf: (low: number, high: number) => Condition | null;
  /** The part of the axis that a filter is; null: it is none of this axis. */
  partOf: (condition: Condition) => [number, number] | null;
}

const MOST_WORDS = 12;
const LETTERS = 14;

/** An axis of numbers, logarithmic where the search space is. null: no row has a value. */
export function columnAxis(trials: TrialsStore, column: string, label: string, parameter: Parameter | undefined): ColumnAxis | null {
  return trials.kindOf(column) === "words" ? wordAxis(trials, column, label) : numberAxis(trials, column, label, parameter);
}

function numberAxis(trials: TrialsStore, column: string, label: string, parameter: Parameter | undefined): ColumnAxis | null {
  const log = parameter?.log === true;
  const form = log ? Math.log : (value: number) => value;
  const back = log ? Math.exp : (value: number) => value;
  const positions = new Float64Array(trials.rows);
  let low = Infinity;
  let high = -Infinity;
  for (let row = 0; row < trials.rows; ++row) {
    const value = form(trials.number(column, row));
    positions[row] = Number.isFinite(value) ? value : NaN;
    if (!Number.isFinite(value)) continue;
    low = Math.min(low, value);
    high = Math.max(high, value);
  }
  if (low > high) return null;
  if (low === high) [low, high] = [low - 1, high + 1];
  const span = high - low;
  for (let row = 0; row < positions.length; ++row) positions[row] = (positions[row]! - low) / span;
  const valueAt = (at: number) => back(low + at * span);
  return {
    column, label, positions,
    ticks: parameter?.kind === "int" && !log ? wholeTicks(low, high)
      : [0, 0.25, 0.5, 0.75, 1].map((at) => ({at, text: number(valueAt(at))})),
    conditionOf: (from, to) => ({kind: "range", column, low: from <= 0 ? -Infinity : rounded(valueAt(from)),
                                 high: to >= 1 ? Infinity : rounded(valueAt(to))}),
    partOf: (condition) => {
      if (condition.kind !== "range" || condition.column !== column) return null;
      const at = (value: number) => Math.max(0, Math.min(1, (form(value) - low) / span));
      return [condition.low === -Infinity ? 0 : at(condition.low) || 0, condition.high === Infinity ? 1 : at(condition.high) || 0];
    },
  };
}

/** There is nothing between two whole numbers. */
function wholeTicks(low: number, high: number): {at: number; text: string}[] {
  const every = Math.max(1, Math.ceil((high - low) / MOST_WORDS));
  const ticks = [];
  for (let value = Math.ceil(low); value <= high; value += every) ticks.push({at: (value - low) / (high - low), text: number(value)});
  return ticks;
}

/** As many digits as a chip can show. */
function rounded(value: number): number {
  return Number(formatBound(Number(value.toPrecision(3))));
}

function wordAxis(trials: TrialsStore, column: string, label: string): ColumnAxis | null {
  const words = trials.wordsOf(column);
  if (words.length === 0) return null;
  const order = [...words].sort((a, b) => (Number(a) - Number(b)) || (a < b ? -1 : 1));
  const placeOf = new Map(order.map((word, i) => [word, (i + 0.5) / order.length]));
  const positions = new Float64Array(trials.rows);
  for (let row = 0; row < trials.rows; ++row) {
    const word = trials.word(column, row);
    positions[row] = word === null ? NaN : placeOf.get(word)!;
  }
  const every = Math.ceil(order.length / MOST_WORDS);
  return {
    column, label, positions,
    ticks: order.filter((_, i) => i % every === 0).map((word) => ({at: placeOf.get(word)!, text: visible(word).slice(0, LETTERS)})),
    conditionOf: (low, high) => {
      const chosen = order.filter((word) => placeOf.get(word)! >= low && placeOf.get(word)! <= high);
      return chosen.length === 0 ? null : {kind: "words", column, words: chosen};
    },
    partOf: (condition) => {
      if (condition.kind !== "words" || condition.column !== column) return null;
      const places = condition.words.flatMap((word) => (word === null ? [] : placeOf.get(word) ?? []));
      const half = 0.5 / order.length;
      return places.length === 0 ? null : [Math.min(...places) - half, Math.max(...places) + half];
    },
  };
}

/** The filters with the one of this axis in the place of its former one; null takes it off. */
export function withCondition(conditions: readonly Condition[], axis: ColumnAxis, wanted: Condition | null): Condition[] {
  const others = conditions.filter((condition) => axis.partOf(condition) === null);
  const whole = wanted?.kind === "range" && wanted.low === -Infinity && wanted.high === Infinity;
  return wanted === null || whole ? others : [...others, wanted];
}

/** Rows in groups by their value, the best in the last: what a ramp of colours shows. -1: it has no value. */
export function groupsByValue(values: Float64Array, maximize: boolean, groups: number): Int8Array {
  const known = values.filter((value) => Number.isFinite(value)).sort();
  const bounds = Array.from({length: groups - 1}, (_, i) => known[Math.floor(((i + 1) * known.length) / groups)] ?? 0);
  return Int8Array.from(values, (value) => {
    if (!Number.isFinite(value)) return -1;
    let group = 0;
    while (group < bounds.length && value >= bounds[group]!) ++group;
    return maximize ? group : groups - 1 - group;
  });
}
