// Curves as they are drawn: the service's answer on the axis that was chosen, with what has been reported since. Pure.

import type {Curve as Answered} from "../../contract";
import type {Curve} from "../../painters/curves";
import {fencedRange, smoothed, wholeRange} from "../../painters/curve_values";
import {numberOf} from "../../table/trials_store";

/** What x can be. `duration` is time since the trial's first value; the service knows the others by these names. */
export const X_AXES = ["step", "time", "duration", "progress", "slot_seconds"] as const;
export type XAxis = (typeof X_AXES)[number];

export const X_LABELS: Record<XAxis, string> = {
  step: "step", time: "time", duration: "time since its first value", progress: "progress", slot_seconds: "slot-seconds",
};

export interface ShownCurve extends Curve {
  id: number;
  trial: number;
  state: string;
  /** It breaks a constraint. */
  infeasible: boolean;
  /** So many values stand behind it. */
  points: number;
  /** Smoothed, or as y is. */
  smooth: Float64Array;
}

/** Values that came in after the answer was made. */
export interface NewValues {
  step: number[];
  at: number[];
  value: number[];
}

export function isXAxis(text: string): text is XAxis {
  return (X_AXES as readonly string[]).includes(text);
}

/** How the service calls the axis. */
export function askedAxis(axis: XAxis): string {
  return axis === "duration" ? "time" : axis;
}

export function shownCurve(answered: Answered, axis: XAxis, weight: number, newer: NewValues | undefined): ShownCurve {
  const x = answered.x.map(numberOf);
  const y = answered.y.map(numberOf);
  if (newer !== undefined) append(x, y, axis, newer);
  const first = axis === "duration" ? (x[0] ?? 0) : 0;
  const values = Float64Array.from(y);
  return {
    id: answered.trial_id, trial: answered.trial, state: answered.state, infeasible: answered.infeasible === true,
    points: Math.max(answered.points, y.length),
    x: Float64Array.from(x, (value) => value - first), y: values, smooth: smoothed(values, weight),
  };
}

/** New values can be placed where the event says where: by step and by time. */
function append(x: number[], y: number[], axis: XAxis, newer: NewValues): void {
  const places = axis === "step" ? newer.step : axis === "progress" || axis === "slot_seconds" ? [] : newer.at;
  places.forEach((place, i) => {
    if (x.length > 0 && place <= x[x.length - 1]!) return;
    x.push(place);
    y.push(newer.value[i]!);
  });
}

/** A list of new values at most so long: beyond it the next answer is waited for. */
const MOST_NEW = 500;

export function remember(newer: NewValues, step: number, at: number, value: number): void {
  newer.step.push(step);
  newer.at.push(at);
  newer.value.push(value);
  if (newer.step.length > MOST_NEW) for (const list of [newer.step, newer.at, newer.value]) list.shift();
}

export interface YRange {
  low: number;
  high: number;
  /** So many values lie outside of it. */
  outside: number;
}

/** What y shows. Both the values and their smoothed line have to be in sight. */
export function yRange(curves: readonly ShownCurve[], maximize: boolean, log: boolean, whole: boolean): YRange {
  let length = 0;
  for (const curve of curves) length += curve.y.length;
  const all = new Float64Array(length);
  let at = 0;
  for (const curve of curves) {
    all.set(curve.y, at);
    at += curve.y.length;
  }
  return whole ? {...wholeRange(all, log), outside: 0} : fencedRange(all, maximize, log);
}

export function xRange(curves: readonly ShownCurve[], log: boolean): [number, number] {
  let low = Infinity;
  let high = -Infinity;
  for (const curve of curves) {
    for (const value of curve.x) {
      if (!Number.isFinite(value) || (log && value <= 0)) continue;
      low = Math.min(low, value);
      high = Math.max(high, value);
    }
  }
  if (low > high) return log ? [1, 10] : [0, 1];
  return low === high && !log ? [low - 1, high + 1] : [low, high];
}

/** Can be drawn on a logarithmic axis: something is above zero. */
export function canBeLog(values: readonly Float64Array[]): boolean {
  return values.some((list) => list.some((value) => value > 0));
}

/** The index of the curve's best value, or of its last where none is finite. */
export function lastFinite(y: Float64Array): number {
  for (let i = y.length - 1; i >= 0; --i) if (Number.isFinite(y[i])) return i;
  return y.length - 1;
}
