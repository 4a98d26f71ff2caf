// One trial: its curve, its slots, what was decided about it, what it printed, and why it ended as it did.

import {useEffect, useMemo, useRef, useState} from "react";

import type {Changed, Curves, Decision, Role, Study, Trial, TrialAnswer, TrialColumns} from "../../contract";
import {visible} from "../../format";
import {Link} from "../../parts/link";
import {Name} from "../../parts/name";
import {Problem} from "../../parts/problem";
import {State} from "../../parts/state";
import {record} from "../../record/record";
import {type AnswerError, type Read, useAnswer, useOverview} from "../../store";
import {numberOf} from "../../table/trials_store";
import {addressOf, go} from "../../url";
import {useCopy} from "../study/clipboard";
import {Clone} from "../study/clone";
import {DecisionsTable} from "../study/decisions";
import {useNewestKeys} from "../study/newest_keys";
import {Note} from "../study/note";
import {isOpen} from "../study/open_trials";
import {TrialActions, cancelTrial, mayAct} from "../study/trial_actions";
import {CloneNews} from "./clone_news";
import {LogPane} from "./log_pane";
import {Origin} from "./origin";
import {Attributes, Parameters, Replicas, TrialFacts} from "./trial_facts";
import {measuredSpeedups} from "./measured";
import {TrialCurve, TrialFigures, goodputOf} from "./trial_plots";
import {SlotsOverTime} from "./slots_plot";

/** An answer, and whether it is one that was read for this page: what is kept of another page's may know of fewer trials. */
function useFresh<T>(path: string | null, matters: (event: Changed) => boolean): {read: Read<T>; fresh: boolean} {
  const read = useAnswer<T>(path, matters);
  const before = useRef<{path: string | null; read: Read<T>}>({path, read});
  if (before.current.path !== path) before.current = {path, read};
  return {read, fresh: path !== null && read !== before.current.read && read.error === null};
}

/** Ids by numbers: the service has trials newest first, and numbers without gaps, so that two questions find one. */
function useTrialId(study: number, number: number): {id: number | null; missing: boolean; error: AnswerError | null} {
  const base = `/api/view/studies/${study}/trials`;
  const found = useRef<number | null>(null);
  const matters = (event: Changed) => event.studies.includes(study) || event.more === true;
  const newest = useFresh<TrialColumns>(found.current === null ? `${base}?from=0&rows=1` : null, matters);
  const place = newest.read.data === null ? null : numberOf(newest.read.data.columns["number"]?.[0]) - number;
  const there = place !== null && place >= 0;
  const own = useFresh<TrialColumns>(there ? `${base}?from=${place}&rows=1` : null, matters);
  if (numberOf(own.read.data?.columns["number"]?.[0]) === number) found.current = numberOf(own.read.data?.columns["id"]?.[0]);
  const missing = found.current === null && newest.fresh && (!there || own.fresh);
  return {id: found.current, missing, error: found.current === null ? newest.read.error ?? own.read.error : null};
}

/** Of one trial while it is there: of another one it is another page. */
export function TrialPage({study, number}: {study: number; number: number}) {
  const {id, missing, error} = useTrialId(study, number);
  const [clones] = useState(() => new CloneNews(study, number));
  const answer = useAnswer<TrialAnswer>(id === null ? null : `/api/view/trials/${id}`, (event) =>
    clones.take(event) || event.trials.some((one) => one.id === id) || event.more === true);
  clones.show(answer.data?.clones ?? []);
  const definition = useAnswer<Study>(`/api/view/studies/${study}`, (event) => event.studies.includes(study));
  const overview = useOverview();
  const problem = error ?? answer.error ?? definition.error;
  if (missing || (problem !== null && (answer.data === null || definition.data === null))) {
    return (
      <section className="panel">
        <h1>Trial {number}</h1>
        {problem === null || missing ? <p>This study has no trial {number}.</p> : <Problem error={problem} what="The trial" />}
        <p><Link to={addressOf.study(study)}>To the study</Link></p>
      </section>
    );
  }
  if (answer.data === null || definition.data === null || overview.data === null) return <p className="muted">Reading …</p>;
  const row = overview.data.studies.find((one) => one.id === study);
  return <Shown key={id} answer={answer.data} study={definition.data} role={overview.data.role} slots={overview.data.pool.slots}
                onPool={row?.kind !== "ask"} best={row?.best?.trial_id ?? null} />;
}

interface ShownProps {
  answer: TrialAnswer;
  study: Study;
  role: Role;
  /** Of the pool. */
  slots: number;
  onPool: boolean;
  best: number | null;
}

function Shown({answer, study, role, slots, onPool, best}: ShownProps) {
  const {trial, decisions} = answer;
  const [acting, setActing] = useState(false);
  const [cloning, setCloning] = useState(false);
  const [copy, copied] = useCopy();
  const acts = onPool && mayAct(role) && isOpen(trial.state);
  const copyParameters = () => copy(`Parameters of trial ${trial.number}`, JSON.stringify(trial.parameters, null, 2));
  useTrialKeys(trial, acts, () => setActing(true), () => setCloning(true), copyParameters);
  useEffect(() => {
    document.title = `Trial ${trial.number} · ${visible(study.name).slice(0, 60)} · Espalier`;
  }, [trial.number, study.name]);
  const ended = trial.ended_at !== null;
  return (
    <>
      <header className="study-head">
        <h1>
          Trial {trial.number}{" "}
          <span className="of">of <Link to={addressOf.study(study.id)}><Name of={study.name} most={40} /></Link></span>
        </h1>
        <State of={trial.state} />
        {trial.id === best && <span className="good">★ best</span>}
        {copied}
        <span className="study-actions">
          <button type="button" onClick={copyParameters}>Copy parameters</button>
          {acts && <button type="button" onClick={() => setCloning(true)}>Clone…</button>}
          {acts && <button type="button" onClick={() => setActing(true)}>Pin or cancel</button>}
        </span>
      </header>
      <Why trial={trial} />
      <Origin answer={answer} />
      <Note text={trial.note} path={mayAct(role) ? `/api/trials/${trial.id}/note` : null} />
      <TrialFacts trial={trial} study={study} onPool={onPool} />
      <div className="study-pictures even">
        <TrialCurve trial={trial} study={study} />
        {onPool && <TrialFigures trial={trial} />}
      </div>
      {onPool && <SlotsOverTime trial={trial} decisions={decisions} />}
      <div className="study-pictures even">
        <Parameters trial={trial} study={study} />
        {onPool && record === null ? <Replicas trial={trial} /> : <Attributes trial={trial} />}
      </div>
      {onPool && (
        <section className="panel" aria-label="Decisions about it">
          <h2>Decisions about it</h2>
          {decisions.length === 0 ? <p className="empty">Nothing has been decided about it yet.</p>
            : <Decided trial={trial} decisions={decisions} />}
        </section>
      )}
      {onPool && record === null && trial.state !== "waiting" && <LogPane trial={trial.id} ended={ended} ranks={trial.ranks} path={trial.log_path} />}
      {onPool && record === null && <Attributes trial={trial} />}
      {acting && (
        <TrialActions trial={trial} most={slots} onCopy={copyParameters} onClose={() => setActing(false)}
                      onClone={() => {
                        setActing(false);
                        setCloning(true);
                      }} />
      )}
      {cloning && (
        <Clone study={study} trial={trial} parameters={trial.parameters} onClose={() => setCloning(false)}
               onCloned={(number) => go(addressOf.trial(study.id, number))} />
      )}
    </>
  );
}

/** Decisions with what came of them. */
function Decided({trial, decisions}: {trial: Trial; decisions: readonly Decision[]}) {
  const {data} = useAnswer<Curves>(goodputOf(trial), (event) => event.trials.some((one) => one.id === trial.id) || event.more === true);
  const measured = useMemo(() => measuredSpeedups(decisions, data?.curves[0]), [decisions, data]);
  return <DecisionsTable decisions={decisions} ofTrial measured={measured} />;
}

/** Why it failed or was pruned, and the last that it printed. */
function Why({trial}: {trial: Trial}) {
  const failed = trial.state === "failed" || trial.state === "fail";
  if (!failed && trial.reason === "") return null;
  return (
    <div className={failed ? "problem" : "note"}>
      <p><b>{failed ? "Why it failed: " : ""}</b><bdi>{visible(trial.reason === "" ? "no reason was told" : trial.reason)}</bdi></p>
      {failed && trial.last_output !== "" && (
        <pre className="last-output" tabIndex={0} role="region" aria-label="the last it printed">{visible(trial.last_output, true)}</pre>
      )}
    </div>
  );
}

function useTrialKeys(trial: Trial, acts: boolean, act: () => void, clone: () => void, copy: () => void): void {
  useNewestKeys([
    {key: "y", does: "copy its parameters", run: copy},
    ...(acts ? [
      {key: "p", does: "pin it", run: act},
      {key: "c", does: "clone it, with other parameters", run: clone},
      {key: "x", does: "cancel it; Undo for 5 s", run: () => cancelTrial(trial)},
    ] : []),
  ]);
}
