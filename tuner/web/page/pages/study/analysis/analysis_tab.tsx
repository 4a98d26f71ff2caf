// What decided in a study: importance, each trial over all parameters, and the value over the two that decided most.

import {useCallback, useMemo} from "react";

import type {Importances, Study, StudyRow} from "../../../contract";
import {count} from "../../../format";
import {Chips} from "../../../table/chips";
import {labelOf, objectiveNames} from "../../../table/columns";
import {useTrialsView} from "../../../table/trials_view";
import type {Trials} from "../../../table/use_trials";
import {record} from "../../../record/record";
import {useAnswer} from "../../../store";
import {addressOf, go, useQuery} from "../../../url";
import {ChooseDimension} from "./choose_dimension";
import {ContourPlot} from "./contour_plot";
import {type Dimension, dimensionsOf, valueDimension} from "./dimensions";
import {FrontPanel} from "./front_panel";
import {ImportancePanel} from "./importance_panel";
import {ParallelPlot} from "./parallel_plot";
import {SlicePlot} from "./slice_plot";
import {SpreadPanel} from "./spread_panel";
import {SweepPanel} from "./sweep_panel";
import {TrustPanel} from "./trust_panel";

const MOST_AXES = 12;

interface AnalysisTabProps {
  study: Study;
  row: StudyRow;
  trials: Trials;
}

export function AnalysisTab({study, row, trials}: AnalysisTabProps) {
  const {store, version} = trials;
  const [objectiveText, setObjective] = useQuery("obj", "0");
  const objective = Math.min(study.directions.length - 1, Math.max(0, Number(objectiveText) || 0));
  const importances = useAnswer<Importances>(`/api/view/studies/${study.id}/analysis?what=importance`,
                                             (event) => event.studies.includes(study.id));
  const view = useTrialsView(study, row.kind, store, version);
  const {all, kept} = useMemo(() => {
    const column = objective === 0 ? "value" : `values:${objective}`;
    const known = {kind: "range", column, low: -Infinity, high: Infinity} as const;
    return {all: store.filter([known]), kept: store.filter([known, ...view.conditions])};
  }, [store, version, view.conditions, objective]); // eslint-disable-line react-hooks/exhaustive-deps
  const value = useMemo(() => valueDimension(study, store, all, objective), [study, store, all, objective]);
  const ranked = useMemo(() => rankedDimensions(study, trials, all, importances.data, objective),
                         [study, trials, all, importances.data, objective]);
  const label = useCallback((column: string) => labelOf(column, study.metric ?? "value", objectiveNames(study)), [study]);
  const maximize = study.directions[objective] === "maximize";
  const open = (trial: number) => go(addressOf.trial(study.id, trial));
  const axes = useMemo(() => (value === null ? [] : [...ranked.slice(0, MOST_AXES), value]), [ranked, value]);
  const best = study.directions.length === 1 ? row.best?.trial_id ?? null : null;
  return (
    <>
      {study.directions.length > 1 && <FrontPanel study={study} trials={trials} rows={kept} onOpen={open} />}
      <ImportancePanel study={study} importances={importances.data} error={importances.error} objective={objective}
                       onObjective={(chosen) => setObjective(String(chosen))} />
      {value === null || ranked.length === 0
        ? <section className="panel"><p className="empty">{emptyText(trials, all.length)}</p></section>
        : (
          <>
            <section className="panel" aria-label="Parameters and value">
              <header className="panel-head"><h2>Parameters and value</h2></header>
              <Chips conditions={view.conditions} errors={view.errors} onConditions={view.setConditions} trials={store}
                     columns={["number", ...view.columns.all]} labelOf={label} />
              <ParallelPlot dimensions={axes} trials={store} version={version} all={all} kept={kept} conditions={view.conditions}
                            onConditions={view.setConditions} maximize={maximize} />
              {ranked.length > MOST_AXES && (
                <p className="muted">The {MOST_AXES} parameters that decided most, of {count(ranked.length)}.</p>
              )}
            </section>
            <Chosen ranked={ranked} value={value} trials={trials} rows={kept} best={best} maximize={maximize} onOpen={open} />
          </>
        )}
      {value !== null && <SpreadPanel study={study} objective={objective} label={value.label} />}
      {record !== null && record.report.sweep !== null && <SweepPanel of={record.report.sweep} metric={study.metric ?? "value"} />}
      {record !== null && record.report.reliability !== null && <TrustPanel of={record.report.reliability} />}
    </>
  );
}

function emptyText(trials: Trials, valued: number): string {
  if (trials.total === null) return "Reading …";
  return valued === 0 ? "No trial has a value yet." : "These trials have no parameters to compare.";
}

/** The most important first; those of which nothing is told come last. */
function rankedDimensions(study: Study, trials: Trials, rows: Uint32Array, importances: Importances | null, objective: number): Dimension[] {
  const order = new Map((importances?.objectives[objective]?.parameters ?? []).map(({name}, place) => [`p:${name}`, place]));
  const place = (of: Dimension) => order.get(of.column) ?? order.size;
  return dimensionsOf(study, trials.store, rows).sort((a, b) => place(a) - place(b));
}

interface ChosenProps {
  ranked: readonly Dimension[];
  value: Dimension;
  trials: Trials;
  rows: Uint32Array;
  best: number | null;
  maximize: boolean;
  onOpen: (trial: number) => void;
}

/** The two parameters that decided most, unless others are chosen. */
function Chosen({ranked, value, trials, rows, best, maximize, onOpen}: ChosenProps) {
  const [first, setFirst] = useQuery("ax", "");
  const [second, setSecond] = useQuery("ay", "");
  const across = ranked.find(({column}) => column === first) ?? ranked[0]!;
  const up = ranked.find(({column}) => column === second && column !== across.column) ?? ranked.find((one) => one !== across) ?? null;
  const shared = {value, trials: trials.store, version: trials.version, rows, best, onOpen};
  return (
    <section className="panel" aria-label="Value by parameter">
      <header className="panel-head">
        <h2>Value by parameter</h2>
        <ChooseDimension label="across" of={ranked} chosen={across} onChoose={setFirst} />
        {up !== null && <ChooseDimension label="up" of={ranked.filter((one) => one !== across)} chosen={up} onChoose={setSecond} />}
      </header>
      <div className="analysis-pair">
        <SlicePlot of={across} {...shared} />
        {up !== null && <SlicePlot of={up} {...shared} />}
      </div>
      {up !== null && <ContourPlot across={across} up={up} maximize={maximize} {...shared} />}
    </section>
  );
}
