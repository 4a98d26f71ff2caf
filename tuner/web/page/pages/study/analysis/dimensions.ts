// A study's parameters and its value as axes from 0 to 1, whatever they are, and parts of them as conditions of the table. Pure.

import type {Study} from "../../../contract";
import {objectiveName} from "../../../table/columns";
import type {Condition} from "../../../table/conditions";
import type {TrialsStore} from "../../../table/trials_store";

export interface Dimension {
  /** Of the table of trials. */
  column: string;
  label: string;
  /** Of a choice, in their order; null: it has numbers. */
  words: readonly string[] | null;
  log: boolean;
  /** It has whole numbers alone. */
  whole: boolean;
  low: number;
  high: number;
}

const MOST_WORDS = 60;

export function dimensionsOf(study: Study, trials: TrialsStore, rows: ArrayLike<number>): Dimension[] {
  const all = study.parameters.map(({name, kind, low, high, log, choices}) =>
    dimensionOf(trials, rows, `p:${name}`, name, kind === "choice" ? choices : null, {log, whole: kind === "int", low, high}));
  return all.filter((one): one is Dimension => one !== null);
}

export function valueDimension(study: Study, trials: TrialsStore, rows: ArrayLike<number>, objective: number): Dimension | null {
  const column = objective === 0 ? "value" : `values:${objective}`;
  return dimensionOf(trials, rows, column, objectiveName(study, objective), null, {log: false, whole: false, low: null, high: null});
}

/** Null: no trial has it. Without bounds it is as long as what is there. */
function dimensionOf(trials: TrialsStore, rows: ArrayLike<number>, column: string, label: string, choices: readonly string[] | null,
                     scale: {log: boolean; whole: boolean; low: number | null; high: number | null}): Dimension | null {
  const kind = trials.kindOf(column);
  if (kind === null) return null;
  if (kind === "words" || choices !== null) {
    const words = choices !== null && choices.length > 0 ? choices : [...trials.wordsOf(column)];
    if (words.length === 0 || words.length > MOST_WORDS) return null;
    return {column, label, words, log: false, whole: false, low: 0, high: words.length - 1};
  }
  let least = scale.low ?? Infinity;
  let most = scale.high ?? -Infinity;
  for (let i = 0; i < rows.length; ++i) {
    const value = trials.number(column, rows[i]!);
    if (!Number.isFinite(value)) continue;
    least = Math.min(least, value);
    most = Math.max(most, value);
  }
  if (!(least <= most)) return null;
  return {column, label, words: null, log: scale.log && least > 0, whole: scale.whole, low: least, high: most};
}

/** From 0 to 1; NaN where the trial does not have it. */
export function partOf(of: Dimension, trials: TrialsStore, row: number): number {
  const cell = trials.cell(of.column, row);
  if (cell === null) return NaN;
  if (of.words !== null) {
    const place = of.words.indexOf(String(cell));
    return place < 0 ? NaN : of.words.length === 1 ? 0.5 : place / (of.words.length - 1);
  }
  return typeof cell === "number" ? partOfNumber(of, cell) : NaN;
}

export function partOfNumber(of: Dimension, value: number): number {
  const [low, high, at] = of.log ? [Math.log(of.low), Math.log(of.high), Math.log(value)] : [of.low, of.high, value];
  return high > low ? (at - low) / (high - low) : 0.5;
}

/** Of a choice: the nearest one's place. */
export function numberAt(of: Dimension, part: number): number {
  if (of.words !== null) return Math.round(part * (of.words.length - 1));
  if (!of.log) return of.low + part * (of.high - of.low);
  return Math.exp(Math.log(of.low) + part * (Math.log(of.high) - Math.log(of.low)));
}

/** What lies between two parts of an axis; null: all of it does. */
export function conditionBetween(of: Dimension, from: number, to: number): Condition | null {
  const [low, high] = from < to ? [from, to] : [to, from];
  if (of.words !== null) {
    const last = Math.max(1, of.words.length - 1);
    const words = of.words.filter((_, place) => place / last >= low - 1e-9 && place / last <= high + 1e-9);
    if (words.length === of.words.length) return null;
    return {kind: "words", column: of.column, words: words.length > 0 ? words : [of.words[numberAt(of, (low + high) / 2)]!]};
  }
  if (low <= 0 && high >= 1) return null;
  const ends = [numberAt(of, low), numberAt(of, high)] as const;
  // Of whole numbers those within; none within: the nearest.
  const [least, most] = of.whole ? [Math.ceil(ends[0] - 1e-9), Math.floor(ends[1] + 1e-9)] : [rounded(ends[0]), rounded(ends[1])];
  const nearest = Math.round((ends[0] + ends[1]) / 2);
  return {kind: "range", column: of.column, low: low <= 0 ? -Infinity : least > most ? nearest : least,
          high: high >= 1 ? Infinity : least > most ? nearest : most};
}

/** As many digits as a brush is exact. */
function rounded(value: number): number {
  return Number(value.toPrecision(4));
}

/** The part of an axis that the conditions leave; null: all. */
export function brushOf(of: Dimension, conditions: readonly Condition[]): [number, number] | null {
  const own = conditions.find((one) => one.column === of.column && one.kind !== "contains");
  if (own === undefined || own.kind === "contains") return null;
  if (own.kind === "range") {
    const part = (value: number, otherwise: number) =>
      Number.isFinite(value) ? Math.min(1, Math.max(0, partOfNumber(of, value))) : otherwise;
    return of.words === null ? [part(own.low, 0), part(own.high, 1)] : null;
  }
  if (of.words === null) return null;
  const places = own.words.map((word) => (word === null ? -1 : of.words!.indexOf(word))).filter((place) => place >= 0);
  const last = Math.max(1, of.words.length - 1);
  return places.length === 0 ? null : [Math.min(...places) / last, Math.max(...places) / last];
}

/** The conditions with another one for this axis, or none. */
export function withBrush(conditions: readonly Condition[], of: Dimension, brush: Condition | null): Condition[] {
  const place = conditions.findIndex((one) => one.column === of.column && one.kind !== "contains");
  const next = conditions.filter((one) => one.column !== of.column || one.kind === "contains");
  if (brush !== null) next.splice(place < 0 ? next.length : place, 0, brush);
  return next;
}
