// The curves of a study that the address asks for, as they grow.

import {useCallback, useEffect, useMemo, useRef, useState} from "react";

import type {Changed, Curves, Values} from "../../contract";
import {type AnswerError, useAnswer, useValues} from "../../store";
import {smoothed} from "../../painters/curve_values";
import {numberOf} from "../../table/trials_store";
import {type NewValues, type ShownCurve, type XAxis, askedAxis, remember, shownCurve} from "./curve_set";

const WIDTH = 1200;
export const MOST_CURVES = 300;

export interface CurvesQuestion {
  study: number;
  axis: XAxis;
  xlog: boolean;
  /** Of which of the study's metrics, from 0. */
  objective: number;
  /** So many of the best. */
  best: number;
  /** These, beside the best. */
  trials: readonly number[];
  view: readonly [number, number] | null;
}

function addressOfCurves(question: CurvesQuestion, which: string, part: boolean): string {
  const {study, axis, xlog, view, objective} = question;
  const range = part && view !== null ? `&from=${view[0]}&to=${view[1]}` : "";
  return `/api/view/studies/${study}/curves?${which}&x=${askedAxis(axis)}&width=${WIDTH}${xlog ? "&xlog=1" : ""}${objective > 0 ? `&objective=${objective}` : ""}${range}`;
}

export interface KeptCurves {
  /** Of which metric. */
  objective: number;
  data: Curves | null;
}

/** The last answer stays in sight until the next is there, but for that of another metric, which would stand under a wrong name. */
export function keptCurves(before: KeptCurves, path: string | null, objective: number, data: Curves | null): KeptCurves {
  if (path === null) return {objective, data: null};
  return data !== null || before.objective !== objective ? {objective, data} : before;
}

function useKept(path: string | null, objective: number, matters: (event: Changed) => boolean): {data: Curves | null; error: AnswerError | null} {
  const {data, error} = useAnswer<Curves>(path, matters);
  const kept = useRef<KeptCurves>({objective, data: null});
  kept.current = keptCurves(kept.current, path, objective, data);
  return {data: kept.current.data, error};
}

/** What has been reported since the page was opened, by trial: it is drawn before the next answer has it. */
function useNewValues(study: number): [ReadonlyMap<number, NewValues>, number] {
  const newer = useRef(new Map<number, NewValues>());
  const [version, setVersion] = useState(0);
  useValues(useCallback((values: Values) => {
    let some = false;
    values.trial_id.forEach((id, i) => {
      if (values.study_id[i] !== study) return;
      const list = newer.current.get(id) ?? {step: [], at: [], value: []};
      remember(list, values.step[i]!, values.at[i]!, numberOf(values.value[i]));
      newer.current.set(id, list);
      some = true;
    });
    if (some) setVersion((count) => count + 1);
  }, [study]));
  useEffect(() => newer.current.clear(), [study]);
  return [newer.current, version];
}

export interface CurvesRead {
  curves: ShownCurve[];
  /** The best first, as the service has them. */
  answer: Curves | null;
  error: AnswerError | null;
}

export function useCurves(question: CurvesQuestion, weight: number): CurvesRead {
  const {study, axis, trials} = question;
  const matters = useCallback((event: Changed) => event.studies.includes(study), [study]);
  const ids = trials.slice(0, MOST_CURVES).join(",");
  const best = question.best > 0 ? `best=${question.best}` : null;
  const whole = useKept(best === null ? null : addressOfCurves(question, best, false), question.objective, matters);
  const chosen = useKept(ids === "" ? null : addressOfCurves(question, `trials=${ids}`, false), question.objective, matters);
  // The service knows no durations.
  const zoomed = question.view !== null && axis !== "duration";
  const bestPart = useKept(zoomed && best !== null ? addressOfCurves(question, best, true) : null, question.objective, matters);
  const chosenPart = useKept(zoomed && ids !== "" ? addressOfCurves(question, `trials=${ids}`, true) : null, question.objective, matters);
  const [newer, version] = useNewValues(study);
  const answers = [whole.data, chosen.data, bestPart.data, chosenPart.data];
  const curves = useMemo(() => {
    const byId = new Map<number, ShownCurve>();
    for (const answer of answers.slice(0, 2)) {
      if (answer === null || answer.x !== askedAxis(axis)) continue;
      for (const one of answer.curves) byId.set(one.trial_id, shownCurve(one, axis, weight, question.objective === 0 ? newer.get(one.trial_id) : undefined));
    }
    for (const answer of answers.slice(2)) {
      if (answer === null || answer.x !== askedAxis(axis)) continue;
      for (const one of answer.curves) {
        const all = byId.get(one.trial_id);
        if (all !== undefined) byId.set(one.trial_id, withPart(all, shownCurve(one, axis, 0, undefined), weight));
      }
    }
    return [...byId.values()].filter((curve) => curve.x.length > 0);
  }, [...answers, axis, weight, version, question.objective]); // eslint-disable-line react-hooks/exhaustive-deps
  return {curves, answer: whole.data ?? chosen.data, error: whole.error ?? chosen.error};
}

/** The curve with a part of it in more detail. */
export function withPart(all: ShownCurve, part: ShownCurve, weight: number): ShownCurve {
  if (part.x.length === 0) return all;
  const first = part.x[0]!;
  const last = part.x[part.x.length - 1]!;
  const before = all.x.findIndex((x) => x >= first);
  const beyond = all.x.findIndex((x) => x > last);
  const head = before < 0 ? all.x.length : before;
  const tail = beyond < 0 ? all.x.length : beyond;
  const joined = (own: Float64Array, detail: Float64Array) =>
    Float64Array.from([...own.subarray(0, head), ...detail, ...own.subarray(tail)]);
  const y = joined(all.y, part.y);
  return {...all, x: joined(all.x, part.x), y, smooth: smoothed(y, weight)};
}
