// What the service would answer about the study of a record, by the same addresses. Pure.

import type {Curve, Curves, Decision, Decisions, TrialAnswer, TrialColumns} from "../contract";
import type {RecordedCurve, Steps, StudyRecord} from "./contract";
import {decimate, scaleOf} from "./decimate";

const BEST = 20;
const WIDTH = 1200;
const DECISIONS = 200;
const DECISIONS_OF_TRIAL = 50;

/** undefined: a record has no such thing. */
export function answerOf(record: StudyRecord, address: string): unknown {
  const [path = "", text = ""] = address.split("?");
  const query = new URLSearchParams(text);
  const study = `/api/view/studies/${record.study.id}`;
  switch (path) {
    case "/api/view/overview": return record.overview;
    case "/api/view/lanes": return record.lanes;  // all of it: what is zoomed to is drawn out of the whole
    case "/api/view/decisions": return decisionsOf(record, query);
    case study: return record.study;
    case `${study}/trials`: return trialsOf(record.trials, query);
    case `${study}/curves`: return curvesOf(record, query);
    case `${study}/analysis`: return record.analyses[query.get("what") ?? ""];
  }
  const trial = /^\/api\/view\/trials\/(\d+)$/.exec(path);
  return trial === null ? undefined : trialOf(record, Number(trial[1]));
}

function trialsOf(all: TrialColumns, query: URLSearchParams): TrialColumns {
  const from = Number(query.get("from") ?? 0);
  const to = Math.min(all.total, from + Number(query.get("rows") ?? all.total));
  const columns = Object.entries(all.columns).map(([name, cells]) => [name, cells.slice(from, to)] as const);
  return {...all, from, rows: Math.max(0, to - from), columns: Object.fromEntries(columns)};
}

function decisionsOf(record: StudyRecord, query: URLSearchParams): Decisions {
  const all = record.decisions.decisions;
  const trial = query.get("trial");
  const kind = query.get("kind");
  const before = query.get("before");
  const most = Number(query.get("limit") ?? DECISIONS);
  const first = before === null ? 0 : all.findIndex((one) => String(one.cursor) === before) + 1;
  const found: Decision[] = [];
  for (let at = first; at < all.length; ++at) {
    const one = all[at]!;
    if ((trial !== null && one.trial_id !== Number(trial)) || (kind !== null && one.kind !== kind)) continue;
    if (found.length === most) return {...record.decisions, next: found[most - 1]!.cursor, decisions: found};
    found.push(one);
  }
  return {...record.decisions, next: null, decisions: found};
}

function trialOf(record: StudyRecord, id: number): TrialAnswer | undefined {
  const trial = record.facts.find((one) => one.id === id);
  if (trial === undefined) return undefined;
  const {version, revision, incarnation, decisions} = record.decisions;
  return {version, revision, incarnation, trial,
          decisions: decisions.filter((one) => one.trial_id === id).slice(0, DECISIONS_OF_TRIAL),
          clones: clonesOf(record.trials, trial.number)};
}

/** By number: the table has the newest first. */
function clonesOf(all: TrialColumns, number: number): TrialAnswer["clones"] {
  const {id = [], number: numbers = [], parent = [], parent_step: step = []} = all.columns;
  const places = parent.flatMap((one, at) => (one === number ? [at] : [])).reverse();
  const stateOf = (at: number) => all.words["state"]?.[all.columns["state"]?.[at] ?? -1] ?? "";
  return places.map((at) => ({trial_id: id[at]!, trial: numbers[at]!, state: stateOf(at), step: step[at] ?? null}));
}

/** The best first, and last those that break a constraint; those without a number are left out. */
function bestOf(record: StudyRecord, most: number, objective: number): number[] {
  const {id = [], infeasible = []} = record.trials.columns;
  const value = record.trials.columns[objective === 0 ? "value" : `values:${objective}`] ?? [];
  const sign = record.study.directions[objective] === "maximize" ? -1 : 1;
  const yes = record.trials.words["infeasible"]?.indexOf("yes") ?? -1;
  const ranked = id.map((one, at) => [one as number, value[at] ?? NaN, infeasible[at] === yes ? 1 : 0] as const)
    .filter(([, of]) => Number.isFinite(of));
  ranked.sort(([a, of, breaks], [b, other, otherBreaks]) => breaks - otherBreaks || sign * (of - other) || a - b);
  return ranked.slice(0, most).map(([one]) => one);
}

export function unpacked(steps: Steps, length: number): number[] {
  const all: number[] = [];
  let at = 0;
  for (let i = 0; i < length; ++i) {
    at += steps.length === 2 && i > 1 ? steps[1]! : steps[i] ?? 0;
    all.push(at);
  }
  return all;
}

function places(curve: RecordedCurve, axis: string): number[] {
  const length = curve.y?.length ?? 0;
  const seconds = (steps: Steps | undefined) => unpacked(steps ?? [], length).map((ms) => ms / 1000);
  if (axis === "time") return seconds(curve.at_ms);
  if (axis === "slot_seconds") return seconds(curve.slot_ms);
  if (axis === "progress") return Array.from({length}, (_, at) => curve.progress?.[at] ?? NaN);
  return unpacked(curve.step ?? [], length);
}

function chosen<T>(of: readonly T[], at: readonly number[]): T[] {
  return at.map((place) => of[place]!);
}

function curveOf(recorded: RecordedCurve, axis: string, log: boolean): {x: number[]; y: number[]; at: number[]} {
  const all = places(recorded, axis);
  const at = all.map((_, place) => place).filter((place) => (log ? all[place]! > 0 : !Number.isNaN(all[place]!)));
  return {x: chosen(all, at), y: at.map((place) => recorded.y?.[place] ?? NaN), at};
}

function curvesOf(record: StudyRecord, query: URLSearchParams): Curves {
  const named = query.get("trials");
  const objective = Number(query.get("objective") ?? 0);
  const ids = named ? named.split(",").map(Number) : bestOf(record, Number(query.get("best") ?? BEST), objective);
  const axis = query.get("x") ?? "step";
  const log = query.get("xlog") === "1";
  const width = Number(query.get("width") ?? WIDTH);
  const byId = new Map((objective === 0 ? record.curves : record.other_curves?.[objective - 1] ?? []).map((curve) => [curve.trial_id, curve]));
  const found = ids.flatMap((id) => {
    const recorded = byId.get(id);
    return recorded === undefined ? [] : [{recorded, ...curveOf(recorded, axis, log)}];
  });
  let from = Infinity;
  let to = -Infinity;
  for (const {x} of found) {
    for (const place of x) {
      from = Math.min(from, place);
      to = Math.max(to, place);
    }
  }
  const scale = scaleOf(Number(query.get("from") ?? from), Number(query.get("to") ?? to), log);
  const {version, revision, incarnation} = record.decisions;
  const curves = found.map(({recorded, x, y, at}): Curve => {
    const kept = decimate(x, y, scale, width);
    const figures = (of: (number | null)[] | undefined) => (of === undefined ? null : chosen(of, chosen(at, kept)));
    return {
      trial_id: recorded.trial_id, trial: recorded.trial, state: recorded.state, infeasible: recorded.infeasible ?? null,
      points: recorded.points, x: chosen(x, kept),
      y: chosen(y, kept).map((value) => (Number.isNaN(value) ? null : value)), promise: figures(recorded.promise),
      goodput: figures(recorded.goodput), batch_size: figures(recorded.batch_size),
    };
  });
  return {version, revision, incarnation, x: axis, metric: record.study.metrics?.[objective] ?? record.study.metric, curves};
}
