// What the service works out of a study's complete trials (GET .../analysis?what=), out of a record. Pure.

import type {StudyRecord} from "./contract";

interface Complete {
  trial_id: number;
  trial: number;
  values: number[];
}

/** Complete trials with a number for each objective. */
function completeOf(record: StudyRecord): Complete[] {
  const {columns, words} = record.trials;
  const complete = (words["state"] ?? []).indexOf("complete");
  const names = record.study.directions.map((_, objective) => (objective === 0 ? "value" : `values:${objective}`));
  return (columns["id"] ?? []).flatMap((id, at) => {
    if (columns["state"]?.[at] !== complete) return [];
    const values = names.map((name) => columns[name]?.[at] ?? NaN);
    return values.some(Number.isNaN) ? [] : [{trial_id: id!, trial: columns["number"]![at]!, values}];
  });
}

/** Those than which no other is better in every objective, by number. */
function front(all: readonly Complete[], signs: readonly number[]): Complete[] {
  const beats = (a: Complete, b: Complete) =>
    signs.every((sign, i) => sign * a.values[i]! <= sign * b.values[i]!) && signs.some((sign, i) => sign * a.values[i]! < sign * b.values[i]!);
  return all.filter((one) => !all.some((other) => beats(other, one))).sort((a, b) => a.trial - b.trial);
}

/** undefined: nothing of that name is worked out of a record. */
export function analysisOf(record: StudyRecord, what: string | null): unknown {
  if (what === "importance") return record.importance;
  const {directions, id} = record.study;
  const all = completeOf(record);
  const heading = {version: 1, study_id: id, what, complete: record.importance.complete};
  if (what === "pareto") return {...heading, trials: front(all, directions.map((one) => (one === "maximize" ? -1 : 1)))};
  if (what !== "edf") return undefined;
  const objectives = directions.map((direction, objective) => {
    const value = all.map(({values}) => values[objective]!).sort((a, b) => a - b);
    return {direction, value, share: value.map((_, at) => (at + 1) / value.length)};
  });
  return {...heading, objectives};
}
