// How a study's best value came to be, beside it in the list of studies.

import {useEffect, useState} from "react";

import type {BestOverTime, StudyRow} from "../../contract";
import {count, number} from "../../format";
import {type Improvements, bestLine, withNewest} from "../../parts/best_line";
import {ask} from "../../store";

const WIDTH = 72;
const HEIGHT = 18;
const EDGE = 2;

export function BestSparkline({study, now}: {study: StudyRow; now: number}) {
  const improvements = useImprovements(study);
  if (improvements === null) return null;
  const maximize = study.direction === "maximize";
  const shown = withNewest(improvements, study.best?.value ?? null, maximize, now);
  const line = bestLine(shown, maximize, study.ended_at ?? now, WIDTH, HEIGHT);
  if (line === "") return null;
  const [first, last] = [shown.value[0], shown.value[shown.value.length - 1]];
  return (
    <svg className="sparkline" role="img" width={WIDTH + 2 * EDGE} height={HEIGHT + 2 * EDGE}
         viewBox={`${-EDGE} ${-EDGE} ${WIDTH + 2 * EDGE} ${HEIGHT + 2 * EDGE}`}
         aria-label={`Best from ${number(first)} to ${number(last)} in ${count(shown.value.length - 1)} steps`}>
      <polyline points={line} />
    </svg>
  );
}

/** They are other ones when the best is another one: then alone they are asked for, which makes few requests of many trials. */
function useImprovements(study: StudyRow): Improvements | null {
  const [told, setTold] = useState<{of: number; improvements: Improvements} | null>(null);
  const best = study.directions.length === 1 ? study.best : null;
  useEffect(() => {
    if (best === null || best.value === null) return undefined;
    let left = false;
    ask<BestOverTime>(`/api/view/studies/${study.id}/analysis?what=best`).then(({objectives}) => {
      const improvements = objectives[0];
      if (!left && improvements !== undefined) setTold({of: study.id, improvements});
    }, () => undefined); // The list says all that it says without them.
    return () => {
      left = true;
    };
  }, [study.id, best?.trial_id, best?.value]);
  return best === null || told?.of !== study.id ? null : told.improvements;
}
