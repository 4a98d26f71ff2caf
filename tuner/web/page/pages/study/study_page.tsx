// One study: its curves, whose slots are where, its trials; what was decided; what it is.

import {memo, useEffect, useMemo, useState} from "react";

import type {Overview, Study, StudyRow} from "../../contract";
import {duration, visible} from "../../format";
import {useNow} from "../../parts/now";
import {Name} from "../../parts/name";
import {Problem} from "../../parts/problem";
import {State} from "../../parts/state";
import {WhyCard} from "../../parts/why";
import {Lanes} from "../../plot/lanes";
import {record} from "../../record/record";
import {useAnswer, useOverview} from "../../store";
import {keptOf} from "../../table/kept";
import {useTrialsView} from "../../table/trials_view";
import {type Trials, useTrials} from "../../table/use_trials";
import {addressOf, go, setQuery, useQuery} from "../../url";
import {useCopy} from "./clipboard";
import {AnalysisTab} from "./analysis/analysis_tab";
import {FrontPanel} from "./analysis/front_panel";
import {ComparisonTab} from "./analysis/comparison_tab";
import {WhatIfTab} from "./analysis/what_if_tab";
import {CurvesPanel} from "./curves_panel";
import {DecisionsTab} from "./decisions";
import {DefinitionTab} from "./definition";
import {Like} from "./like";
import {LineagePanel} from "./lineage/lineage_panel";
import {useNewestKeys} from "./newest_keys";
import {Note} from "./note";
import {parametersOf} from "./parameters";
import {PromisePanel} from "./promise_panel";
import {RecordFacts} from "./record_facts";
import {StudyActions} from "./study_actions";
import {Tiles} from "./tiles";
import {mayAct} from "./trial_actions";
import {TrialsTable} from "./trials_table";

const TABS = [["overview", "Overview"], ["analysis", "Analysis"], ["decisions", "Decisions"], ["whatif", "What if"],
              ["definition", "Definition"]] as const;

export function StudyPage({id}: {id: number}) {
  const study = useAnswer<Study>(`/api/view/studies/${id}`, (event) => event.studies.includes(id));
  const overview = useOverview();
  const row = overview.data?.studies.find((one) => one.id === id);
  if (study.error !== null && study.data === null) {
    return <section className="panel"><h1>Study {id}</h1><Problem error={study.error} what="The study" /></section>;
  }
  if (study.data === null || overview.data === null) return <p className="muted">Reading …</p>;
  if (row === undefined) {
    return <section className="panel"><h1><Name of={study.data.name} /></h1><p>This study has been deleted.</p></section>;
  }
  return <Shown key={id} study={study.data} row={row} overview={overview.data} />;
}

function Shown({study, row, overview}: {study: Study; row: StudyRow; overview: Overview}) {
  const [tab] = useQuery("tab", "overview", "push");
  const trials = useTrials(study.id);
  const [copy, copied] = useCopy();
  const kept = useMemo(() => keptOf(trials.store), [trials.store, trials.version]); // eslint-disable-line react-hooks/exhaustive-deps
  const best = row.best;
  const bestRow = best === null ? undefined : trials.store.rowOf(best.trial_id);
  const copyBest = best === null || row.directions.length > 1 ? null : () =>
    copy(`Parameters of trial ${best.trial}`, JSON.stringify(parametersOf(trials.store, bestRow), null, 2));
  const showTab = (name: string) => setQuery({tab: name === "overview" ? null : name}, "push");
  useNewestKeys([
    {key: "o", does: "Overview of the study", run: () => showTab("overview")},
    {key: "a", does: "Analysis of the study", run: () => showTab("analysis")},
    {key: "d", does: "Decisions of the study", run: () => showTab("decisions")},
    {key: "y", does: "copy the best parameters", run: () => bestRow !== undefined && copyBest?.()},
  ]);
  useEffect(() => {
    document.title = `${visible(study.name).slice(0, 60)} · Espalier`;
  }, [study.name]);
  return (
    <>
      <header className="study-head">
        <h1><Name of={study.name} /></h1>
        <State of={row.state} />
        {row.ended_at === null && row.remaining_s !== null && <span className="muted">{duration(row.remaining_s)} left</span>}
        {copied}
        {mayAct(overview.role) && <span className="study-actions"><StudyActions study={study} row={row} /></span>}
      </header>
      {study.reason !== "" && <p className={row.state === "failed" ? "problem" : "note"}><bdi>{visible(study.reason)}</bdi></p>}
      {study.like !== null && <Like like={study.like} studies={overview.studies} />}
      <Note text={study.note} path={mayAct(overview.role) ? `/api/studies/${encodeURIComponent(study.name)}/note` : null} />
      {[...row.notices, ...(record?.report.notice ? [record.report.notice] : [])].map((notice) => <p className="notice" key={notice}>{visible(notice)}</p>)}
      <Tiles study={study} row={row} kept={kept} poolSlots={overview.pool.slots} onCopyBest={bestRow === undefined ? null : copyBest} />
      <RecordFacts />
      <nav className="tabs" aria-label="Parts of the study">
        {TABS.filter(([name]) => name !== "whatif" || (record === null ? row.kind !== "ask" : record.comparison !== undefined)).map(([name, label]) => (
          <button type="button" key={name} aria-current={tab === name ? "page" : undefined} onClick={() => showTab(name)}>
            {label}
          </button>
        ))}
      </nav>
      {tab === "decisions" ? <DecisionsTab study={study.id} />
        : tab === "definition" ? <DefinitionTab study={study} />
        : tab === "analysis" ? <AnalysisTab study={study} row={row} trials={trials} />
        : tab === "whatif" && record !== null ? record.comparison && <ComparisonTab of={record.comparison} />
        : tab === "whatif" ? <WhatIfTab row={row} role={overview.role} policy={overview.pool.policy || study.policy} />
          : <OverviewTab study={study} row={row} overview={overview} trials={trials} />}
    </>
  );
}

interface OverviewTabProps {
  study: Study;
  row: StudyRow;
  overview: Overview;
  trials: Trials;
}

function OverviewTab({study, row, overview, trials}: OverviewTabProps) {
  const [hovered, setHovered] = useState<number | null>(null);
  const open = useMemo(() => (trial: number) => go(addressOf.trial(study.id, trial)), [study.id]);
  const onPool = row.kind !== "ask";
  return (
    <>
      {study.directions.length > 1 && <Fronts study={study} row={row} trials={trials} onOpen={open} />}
      <div className={onPool ? "study-pictures" : undefined}>
        <CurvesPanel study={study} row={row} trials={trials} hovered={hovered} onHover={setHovered} onOpen={open} />
        {onPool && <PromisePanel study={study} trials={trials} hovered={hovered} onHover={setHovered} onOpen={open} />}
      </div>
      <LineagePanel study={study} row={row} trials={trials} hovered={hovered} onHover={setHovered} onOpen={open} />
      {onPool && <SlotsPanel study={study.id} />}
      <TrialsTable study={study} row={row} role={overview.role} slots={overview.pool.slots} trials={trials} hovered={hovered}
                   onHover={setHovered} />
    </>
  );
}

/** Of those that the table's filters leave. What is pointed at elsewhere does not concern it. */
const Fronts = memo(function Fronts({study, row, trials, onOpen}: {study: Study; row: StudyRow; trials: Trials; onOpen: (trial: number) => void}) {
  const {store, version} = trials;
  const {conditions} = useTrialsView(study, row.kind, store, version);
  const rows = useMemo(() => store.filter(conditions), [store, version, conditions]); // eslint-disable-line react-hooks/exhaustive-deps
  return <FrontPanel study={study} trials={trials} rows={rows} onOpen={onOpen} />;
});

/** What is pointed at elsewhere does not concern it. */
const SlotsPanel = memo(function SlotsPanel({study}: {study: number}) {
  const now = useNow();
  const [why, setWhy] = useQuery("why", "");
  const chosen = /^(\d+)@(\d+(?:\.\d+)?)$/.exec(why);
  return (
    <section className="panel" aria-label="Slots of this study">
      <div className="panel-head"><h2>Slots of this study</h2></div>
      <Lanes study={study} onWhy={(trial, at) => setQuery({why: `${trial}@${at.toFixed(1)}`})} />
      {chosen && <WhyCard trial_id={Number(chosen[1])} at={Number(chosen[2])} now={now} onClose={() => setWhy("")} />}
    </section>
  );
});
