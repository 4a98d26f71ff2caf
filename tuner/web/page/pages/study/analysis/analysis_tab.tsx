// What the value depends on: importance, parallel coordinates, and the value over single parameters.

import {useMemo} from "react";

import type {Study, StudyRow} from "../../../contract";
import {useAnswer} from "../../../store";
import {labelOf} from "../../../table/columns";
import {useTrialsView} from "../../../table/trials_view";
import type {Trials} from "../../../table/use_trials";
import {type ColumnAxis, columnAxis, groupsByValue} from "./axes";
import {type Importance, ImportancePanel} from "./importance";
import {PARALLEL_GROUPS, ParallelPlot} from "./parallel_plot";
import {Slice} from "./slices";

const MOST_AXES = 10;
const MOST_SLICES = 4;

interface AnalysisTabProps {
  study: Study;
  row: StudyRow;
  trials: Trials;
  onOpen: (trial: number) => void;
}

export function AnalysisTab({study, row, trials, onOpen}: AnalysisTabProps) {
  const {store, version} = trials;
  const importance = useAnswer<Importance>(`/api/view/studies/${study.id}/analysis?what=importance`,
                                           (event) => event.studies.includes(study.id));
  const view = useTrialsView(study, row.kind, store, version);
  const parameters = useMemo(() => byImportance(study, importance.data), [study, importance.data]);
  const rows = useMemo(() => store.filter(view.conditions), [store, version, view.conditions]); // eslint-disable-line react-hooks/exhaustive-deps
  const groups = useMemo(() => {
    const values = Float64Array.from({length: store.rows}, (_, at) => store.number("value", at));
    return groupsByValue(values, study.direction === "maximize", PARALLEL_GROUPS);
  }, [store, version, study.direction]); // eslint-disable-line react-hooks/exhaustive-deps
  const axes = useMemo(() => {
    const columns = [...parameters.slice(0, MOST_AXES).map((name) => `p:${name}`),
                     ...study.directions.map((_, i) => (i === 0 ? "value" : `values:${i}`))];
    return columns.map((column) => columnAxis(
      store, column, labelOf(column, study.metric ?? "value", study.directions.length),
      study.parameters.find(({name}) => `p:${name}` === column),
    )).filter((axis): axis is ColumnAxis => axis !== null);
  }, [store, version, parameters, study]); // eslint-disable-line react-hooks/exhaustive-deps
  return (
    <>
      <div className="study-pictures narrow-first">
        <ImportancePanel study={study} read={importance} />
        <section className="panel" aria-label="Value over parameters">
          <h2>Value over parameters</h2>
          <div className="slices">
            {parameters.slice(0, MOST_SLICES).map((name) => (
              <Slice key={name} trials={store} version={version} rows={rows} groups={groups} column={`p:${name}`} label={name}
                     log={study.parameters.find((one) => one.name === name)?.log === true} metric={study.metric ?? "value"}
                     valueColumn="value" maximize={study.direction === "maximize"} onOpen={onOpen} />
            ))}
          </div>
        </section>
      </div>
      <section className="panel" aria-label="Parallel coordinates">
        <h2>Parallel coordinates</h2>
        {axes.length < 2 ? <p className="empty">No trial with parameters and a value yet.</p> : (
          <ParallelPlot axes={axes} all={store.rows} rows={rows} groups={groups} conditions={view.conditions}
                        onConditions={view.setConditions} />
        )}
      </section>
    </>
  );
}

/** The most important first; the search space's order where that is not known. */
function byImportance(study: Study, importance: Importance | null): string[] {
  const known = new Map((importance?.objectives[0]?.parameters ?? []).map(({name, importance: part}) => [name, part]));
  return study.parameters.map(({name}) => name).sort((a, b) => (known.get(b) ?? 0) - (known.get(a) ?? 0));
}
