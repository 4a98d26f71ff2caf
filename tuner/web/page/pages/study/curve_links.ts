// Where the curves of clones leave those of their parents, on the axis of steps. Pure.

import type {TrialsStore} from "../../table/trials_store";
import type {ShownCurve} from "./curve_set";

/** From a point of the parent's curve to the first of the clone's. */
export interface CurveLink {
  id: number;
  from: [x: number, y: number];
  to: [x: number, y: number];
}

/** Those of which both curves are shown, and of the parent's a value at the step of the checkpoint or before it. */
export function linksOf(curves: readonly ShownCurve[], trials: TrialsStore): CurveLink[] {
  if (trials.kindOf("parent") === null) return [];
  const byNumber = new Map(curves.map((curve) => [curve.trial, curve]));
  return curves.flatMap((clone) => {
    const row = trials.rowOf(clone.id);
    const parent = row === undefined ? undefined : byNumber.get(trials.number("parent", row));
    const first = clone.smooth.findIndex((value) => Number.isFinite(value));
    if (row === undefined || parent === undefined || first < 0) return [];
    const at = lastAt(parent, trials.number("parent_step", row));
    return at < 0 ? [] : [{id: clone.id, from: [parent.x[at]!, parent.smooth[at]!], to: [clone.x[first]!, clone.smooth[first]!]}];
  });
}

function lastAt(curve: ShownCurve, step: number): number {
  let found = -1;
  for (let i = 0; i < curve.x.length && curve.x[i]! <= step; ++i) if (Number.isFinite(curve.smooth[i])) found = i;
  return found;
}
