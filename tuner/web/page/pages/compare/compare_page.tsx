// Trials beside one another: the parameters that differ, their curves in one picture, their slots and what they cost.

import {useCallback, useEffect, useMemo, useState} from "react";

import type {Study, Trial, TrialAnswer} from "../../contract";
import {count, duration, number, visible} from "../../format";
import {Infeasible} from "../../parts/kept";
import {Link} from "../../parts/link";
import {Name} from "../../parts/name";
import {Problem} from "../../parts/problem";
import {State} from "../../parts/state";
import {type AnswerError, store, useAnswer} from "../../store";
import {PartBar, Swatch} from "../../table/cells";
import {parseIds} from "../../table/trials_view";
import {addressOf, go, setQuery, useQuery, useQueryText, useRange} from "../../url";
import {AxisChoice, useAxis} from "../study/axis_choice";
import {useMetric} from "../study/metric_choice";
import {canBeLog} from "../study/curve_set";
import {CurvesPlot} from "../study/curves_plot";
import {usePictureButton} from "../study/picture";
import {useCurves} from "../study/use_curves";
import {valueText} from "../trial/trial_facts";
import {differencesOf, valueRows} from "./differences";

/** So many columns can be read. */
const MOST = 20;

export function ComparePage() {
  const text = useQueryText("t");
  const ids = useMemo(() => parseIds(text).slice(0, MOST), [text]);
  const [answers, setAnswers] = useState<ReadonlyMap<number, TrialAnswer | AnswerError>>(new Map());
  const take = useCallback((id: number, answer: TrialAnswer | AnswerError) =>
    setAnswers((before) => (before.get(id) === answer ? before : new Map(before).set(id, answer))), []);
  const trials = ids.map((id) => answers.get(id)).filter((one): one is TrialAnswer => one !== undefined && "trial" in one)
    .map(({trial}) => trial);
  const errors = ids.map((id) => answers.get(id)).filter((one): one is AnswerError => one !== undefined && !("trial" in one));
  const remove = (id: number) => setQuery({t: ids.filter((other) => other !== id).join(",") || null});
  return (
    <>
      <h1>Compare {ids.length} {ids.length === 1 ? "trial" : "trials"}</h1>
      {ids.map((id) => <Read key={id} id={id} onAnswer={take} />)}
      {parseIds(text).length > MOST && <p className="notice">The first {MOST} of {parseIds(text).length} are shown.</p>}
      {ids.length === 0 && <p className="empty">Choose trials in the table of a study, and then Compare.</p>}
      {errors.map((error) => <Problem key={error.message} error={error} what="A trial" />)}
      {trials.length > 0 && <Shown trials={trials} onRemove={remove} />}
    </>
  );
}

/** Reads one trial: how many there are may change. */
function Read({id, onAnswer}: {id: number; onAnswer: (id: number, answer: TrialAnswer | AnswerError) => void}) {
  const {data, error} = useAnswer<TrialAnswer>(
    `/api/view/trials/${id}`, (event) => event.trials.some((one) => one.id === id) || event.more === true);
  const told = data ?? error;
  useEffect(() => {
    if (told !== null) onAnswer(id, told);
  }, [id, told, onAnswer]);
  return null;
}

function Shown({trials, onRemove}: {trials: readonly Trial[]; onRemove: (id: number) => void}) {
  const [hovered, setHovered] = useState<number | null>(null);
  const key = trials.map(({id}) => id).join(",");
  const colors = useMemo(() => new Map(parseIds(key).map((id, i) => [id, i])), [key]);
  const studies = [...new Set(trials.map((trial) => trial.study_id))];
  return (
    <>
      {studies.map((study) => (
        <StudyCurves key={study} study={study} trials={trials.filter((trial) => trial.study_id === study)} colors={colors}
                     hovered={hovered} onHover={setHovered} />
      ))}
      <Table trials={trials} severalStudies={studies.length > 1} colors={colors} hovered={hovered} onHover={setHovered}
             onRemove={onRemove} />
    </>
  );
}

interface StudyCurvesProps {
  study: number;
  trials: readonly Trial[];
  colors: ReadonlyMap<number, number>;
  hovered: number | null;
  onHover: (id: number | null) => void;
}

/** Values of different studies do not compare: each study has its own picture. */
function StudyCurves({study: id, trials, colors, hovered, onHover}: StudyCurvesProps) {
  const study = useAnswer<Study>(`/api/view/studies/${id}`, (event) => event.studies.includes(id));
  const [axis, setAxis] = useAxis();
  const [logs, setLogs] = useQuery("log", "");
  const [view, setView] = useRange(`zoom${id}`);
  const key = trials.map((trial) => trial.id).join(",");
  const ids = useMemo(() => parseIds(key), [key]);
  const metric = useMetric(study.data);
  const {curves, error} = useCurves({study: id, axis, xlog: false, objective: metric.objective, best: 0, trials: ids, view}, 0);
  const chosen = useMemo(() => new Set(ids), [ids]);
  const [picture, pictureButton] = usePictureButton(`${study.data?.name ?? "study"}-compared`);
  if (study.data === null) return study.error === null ? null : <Problem error={study.error} what="The study" />;
  const possible = canBeLog(curves.map((curve) => curve.y));
  const {name} = study.data;
  return (
    <section className="panel" aria-label={`Curves of ${visible(name)}`} ref={picture}>
      <h2>Curves of <Link to={addressOf.study(id, {chosen: key})}><Name of={name} most={40} /></Link></h2>
      {error !== null && <Problem error={error} what="Curves" />}
      <CurvesPlot
        label={`${metric.name} of the compared trials`} curves={curves} metric={metric.name}
        maximize={metric.maximize} axis={axis} xlog={false} ylog={logs === "y" && possible} whole smooth={false}
        height={260} view={view} onView={setView} chosen={chosen} best={null} colors={colors} hovered={hovered} onHover={onHover} onOpen={(curve) => go(addressOf.trial(id, curve.trial))}
        tools={
          <>
            {metric.choice}
            <AxisChoice axis={axis} onAxis={setAxis} onView={setView} />
            <button type="button" aria-pressed={logs === "y" && possible} disabled={!possible}
                    onClick={() => setLogs(logs === "y" ? "" : "y")}>log y</button>
            {pictureButton}
          </>
        }
      />
    </section>
  );
}

function differing(value: unknown): React.ReactNode {
  return value === undefined ? "–" : <bdi>{valueText(value).slice(0, 200)}</bdi>;
}

interface TableProps {
  trials: readonly Trial[];
  severalStudies: boolean;
  colors: ReadonlyMap<number, number>;
  hovered: number | null;
  onHover: (id: number | null) => void;
  onRemove: (id: number) => void;
}

function Table({trials, severalStudies, colors, hovered, onHover, onRemove}: TableProps) {
  const [all, setAll] = useQuery("same", "hide");
  const parameters = differencesOf(trials.map((trial) => trial.parameters), []);
  const attributes = differencesOf(trials.map((trial) => trial.user_attributes), []);
  const shown = [...parameters, ...attributes.map((one) => ({...one, name: `attribute ${one.name}`}))]
    .filter((one) => all === "show" || one.differs || trials.length === 1);
  const hidden = parameters.length + attributes.length - shown.length;
  const now = store.now();
  const cell = (trial: Trial, content: React.ReactNode, numeric: boolean) => (
    <td key={trial.id} className={`${numeric ? "number" : ""} ${trial.id === hovered ? "hovered" : ""}`}
        onMouseEnter={() => onHover(trial.id)}>{content}</td>
  );
  const row = (name: string, of: (trial: Trial) => React.ReactNode, numeric = true) => (
    <tr><th scope="row">{name}</th>{trials.map((trial) => cell(trial, of(trial), numeric))}</tr>
  );
  return (
    <section className="panel" aria-label="Compared trials">
      <header className="panel-head">
        <h2>What differs</h2>
        {(hidden > 0 || all === "show") && (
          <button type="button" aria-pressed={all === "show"} onClick={() => setAll(all === "show" ? "hide" : "show")}>
            {all === "show" ? "with what is alike" : `${count(hidden)} are alike: show`}
          </button>
        )}
      </header>
      <div className="table-frame compare" tabIndex={0} role="region" aria-label="Compared trials, as a table"
           onMouseLeave={() => onHover(null)}>
        <table>
          <thead>
            <tr>
              <th scope="col">trial</th>
              {trials.map((trial) => (
                <th scope="col" key={trial.id} className="number">
                  <Swatch place={colors.get(trial.id) ?? trial.id} />{" "}
                  <Link to={addressOf.trial(trial.study_id, trial.number)}>{trial.number}</Link>{" "}
                  <button type="button" className="row-menu" aria-label={`Leave out trial ${trial.number}`}
                          onClick={() => onRemove(trial.id)}>✕</button>
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {severalStudies && row("study", (trial) => <Name of={trial.study} most={24} />)}
            {row("state", (trial) => <State of={trial.state} />)}
            {valueRows(trials).map(({name, values}) => (
              <tr key={name}><th scope="row"><Name of={name} most={40} /></th>{trials.map((trial, i) => cell(trial, number(values[i], 4), true))}</tr>
            ))}
            {trials.some((trial) => trial.infeasible !== null) && row("infeasible", (trial) =>
              trial.infeasible === null ? "–" : <Infeasible of={trial.infeasible} />)}
            {shown.map((one) => (
              <tr key={one.name} className="differs">
                <th scope="row"><Name of={one.name} most={40} /></th>
                {trials.map((trial, i) => cell(trial, differing(one.values[i]), true))}
              </tr>
            ))}
            {row("step", (trial) => count(trial.step))}
            {row("slots now", (trial) => count(trial.slots))}
            {row("promise", (trial) => <PartBar part={trial.promise} />)}
            {row("goodput", (trial) => number(trial.goodput))}
            {row("batch size", (trial) => count(trial.batch_size))}
            {row("slots used", (trial) => duration(trial.slot_seconds))}
            {row("time", (trial) => trial.started_at === null ? "–" : duration((trial.ended_at ?? now) - trial.started_at))}
            {row("why", (trial) => trial.reason === "" ? "–" : <bdi>{visible(trial.reason).slice(0, 200)}</bdi>)}
          </tbody>
        </table>
      </div>
    </section>
  );
}
