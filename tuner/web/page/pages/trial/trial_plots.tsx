// A trial's values, and what they were reported with: promise, goodput, batch size.

import {useMemo} from "react";

import type {Curves, Study, Trial} from "../../contract";
import {Choices} from "../../parts/choices";
import {Problem} from "../../parts/problem";
import {useAnswer} from "../../store";
import {addressOf, go, useQuery, useRange} from "../../url";
import {AxisChoice, useAxis} from "../study/axis_choice";
import {canBeLog, shownCurve} from "../study/curve_set";
import {CurvesPlot} from "../study/curves_plot";
import {useMetric} from "../study/metric_choice";
import {usePictureButton} from "../study/picture";
import {useCurves} from "../study/use_curves";
import {numberOf} from "../../table/trials_store";

const HEIGHT = 240;

export function TrialCurve({trial, study}: {trial: Trial; study: Study}) {
  const [axis, setAxis] = useAxis();
  const [logs, setLogs] = useQuery("log", "");
  const [smoothing, setSmoothing] = useQuery("smooth", "0");
  const [view, setView] = useRange("zoom");
  const trials = useMemo(() => [trial.id], [trial.id]);
  const only = useMemo(() => new Set(trials), [trials]);
  const weight = Math.max(0, Math.min(0.99, Number(smoothing) || 0));
  const metric = useMetric(study);
  const {curves, answer, error} = useCurves({study: study.id, axis, xlog: false, objective: metric.objective, best: 0, trials, view}, weight);
  const possible = canBeLog(curves.map((curve) => curve.y));
  const [picture, pictureButton] = usePictureButton(`${study.name}-trial-${trial.number}`);
  if (curves.length === 0 && answer !== null) {
    return (
      <section className="panel" aria-label="Curve">
        <h2>Curve</h2>
        {metric.choice}
        <p className="empty">{study.metric === null ? "It has no metric, and so no curve." : "It has reported no value."}</p>
      </section>
    );
  }
  return (
    <section className="panel" aria-label="Curve" ref={picture}>
      <h2>Curve</h2>
      {error !== null && <Problem error={error} what="The curve" />}
      <CurvesPlot
        label={`${metric.name} of trial ${trial.number}`} curves={curves} metric={metric.name}
        maximize={metric.maximize} axis={axis} xlog={false} ylog={logs === "y" && possible} whole={false} smooth={weight > 0} height={HEIGHT} view={view}
        onView={setView} chosen={only} best={null} hovered={null} onHover={() => undefined} onOpen={() => undefined}
        tools={
          <>
            {metric.choice}
            <AxisChoice axis={axis} onAxis={setAxis} onView={setView} />
            <label className="tool">
              smooth{" "}
              <select value={smoothing} onChange={(event) => setSmoothing(event.target.value)}>
                {["0", "0.5", "0.8", "0.9", "0.97"].map((one) => <option key={one}>{one}</option>)}
              </select>
            </label>
            <button type="button" aria-pressed={logs === "y" && possible} disabled={!possible}
                    onClick={() => setLogs(logs === "y" ? "" : "y")}>log y</button>
            {pictureButton}
            <button type="button" onClick={() => go(addressOf.study(study.id, {chosen: String(trial.id)}))}>Among the others</button>
          </>
        }
      />
    </section>
  );
}

type Figure = "promise" | "goodput" | "batch_size";
const FIGURES: readonly (readonly [Figure, string])[] = [["promise", "promise"], ["goodput", "goodput"], ["batch_size", "batch size"]];

/** The address of what its values were reported with, over time. */
export function goodputOf(trial: Trial): string {
  return `/api/view/studies/${trial.study_id}/curves?trials=${trial.id}&x=time&width=800`;
}

export function TrialFigures({trial}: {trial: Trial}) {
  const [text, setFigure] = useQuery("figure", "promise");
  const [view, setView] = useRange("figurezoom");
  const only = useMemo(() => new Set([trial.id]), [trial.id]);
  const [figure, name] = FIGURES.find(([one]) => one === text) ?? FIGURES[0]!;
  const answer = useAnswer<Curves>(goodputOf(trial),
                                   (event) => event.trials.some((one) => one.id === trial.id) || event.more === true);
  const curves = useMemo(() => (answer.data?.curves ?? []).map((curve) => {
    const places = (curve[figure] ?? []).map((value, i) => [numberOf(curve.x[i]), numberOf(value)] as const)
      .filter(([, value]) => !Number.isNaN(value));
    return shownCurve({...curve, infeasible: null, x: places.map(([x]) => x), y: places.map(([, y]) => y), points: places.length}, "time", 0, undefined);
  }).filter((curve) => curve.x.length > 0), [answer.data, figure]);
  return (
    <section className="panel" aria-label="Promise, goodput and batch size">
      <header className="panel-head">
        <h2>Over time</h2>
        <Choices label="" of={FIGURES} chosen={figure} onChoose={setFigure} />
      </header>
      {curves.length === 0 && !answer.loading ? <p className="empty">No {name} has been recorded with its values.</p> : (
        <CurvesPlot label={`${name} of trial ${trial.number} over time`} curves={curves} metric={name} maximize axis="time"
                    xlog={false} ylog={false} whole smooth={false} height={HEIGHT} view={view} onView={setView}
                    chosen={only} best={null} hovered={null} onHover={() => undefined} onOpen={() => undefined} />
      )}
    </section>
  );
}
