// What was decided, and why: the newest first, with the figures that it was decided by.

import {useEffect, useRef, useState} from "react";

import type {Decision, Decisions as Answer} from "../../contract";
import {duration, number, time, visible} from "../../format";
import {Link} from "../../parts/link";
import {OtherTrial} from "../../parts/other_trial";
import {Problem} from "../../parts/problem";
import {AnswerError, ask, store, useAnswer} from "../../store";
import {PartBar} from "../../table/cells";
import {addressOf, useQuery} from "../../url";

const LIMIT = 200;
const KINDS = ["start", "grow", "shrink", "move", "prune", "pause", "resume", "restart", "finish", "fail", "pool", "study"];

function addressOfDecisions(study: number, kind: string, trial: number | null, before: string | number | null): string {
  const keys = [`study=${study}`, ...(kind === "" ? [] : [`kind=${kind}`]), ...(trial === null ? [] : [`trial=${trial}`]),
                ...(before === null ? [] : [`before=${encodeURIComponent(before)}`]), `limit=${LIMIT}`];
  return `/api/view/decisions?${keys.join("&")}`;
}

/** All that has been read of one question, the newest first. */
function useDecisions(study: number, kind: string, trial: number | null) {
  const question = addressOfDecisions(study, kind, trial, null);
  const kept = useRef({question: "", known: new Map<string | number, Decision>(), next: null as string | number | null});
  const [, setVersion] = useState(0);
  const [error, setError] = useState<AnswerError | null>(null);
  const newest = useAnswer<Answer>(question, (event) => event.decisions && event.studies.includes(study));
  if (kept.current.question !== question) kept.current = {question, known: new Map(), next: null};
  useEffect(() => {
    const {current} = kept;
    if (newest.data === null || current.question !== question) return;
    if (current.known.size === 0) current.next = newest.data.next;
    current.known = new Map([...keyed(newest.data), ...current.known]);
    setVersion((count) => count + 1);
  }, [newest.data, question]);
  const older = () => {
    ask<Answer>(addressOfDecisions(study, kind, trial, kept.current.next)).then((answer) => {
      const {current} = kept;
      if (current.question !== question) return;
      current.known = new Map([...current.known, ...keyed(answer)]);
      current.next = answer.next;
      setVersion((count) => count + 1);
      setError(null);
    }, (refused: AnswerError) => setError(refused));
  };
  // Many are made at one moment: they stay in the order of the answers.
  const all = [...kept.current.known.values()].sort((a, b) => b.at - a.at);
  return {all, more: kept.current.next !== null, older, error: error ?? newest.error, loading: newest.loading};
}

function keyed(answer: Answer): (readonly [string | number, Decision])[] {
  return answer.decisions.map((decision) => [decision.cursor, decision] as const);
}

export function DecisionsTab({study}: {study: number}) {
  const [kind, setKind] = useQuery("kind", "");
  const {all, more, older, error, loading} = useDecisions(study, KINDS.includes(kind) ? kind : "", null);
  return (
    <section className="panel" aria-label="Decisions">
      <header className="panel-head">
        <h2>Decisions</h2>
        <label>
          kind{" "}
          <select value={kind} onChange={(event) => setKind(event.target.value)}>
            <option value="">all</option>
            {KINDS.map((one) => <option key={one}>{one}</option>)}
          </select>
        </label>
      </header>
      {error !== null && <Problem error={error} what="Decisions" />}
      {all.length === 0 && (
        <p className="empty">
          {loading ? "Reading …" : kind === "" ? "Nothing has been decided yet." : `No decision is of the kind ${kind}.`}
        </p>
      )}
      {all.length > 0 && <DecisionsTable decisions={all} ofTrial={false} />}
      {more && <p><button type="button" onClick={older}>Older decisions</button></p>}
    </section>
  );
}

interface DecisionsTableProps {
  decisions: readonly Decision[];
  ofTrial: boolean;
  /** Speedups that were measured after decisions, by their cursors: where they are known at all. */
  measured?: ReadonlyMap<string | number, number>;
}

export function DecisionsTable({decisions, ofTrial, measured}: DecisionsTableProps) {
  const now = store.now();
  return (
    <div className="table-frame" tabIndex={0} role="region" aria-label="Decisions, as a table">
      <table className="decisions">
        <thead>
          <tr>
            <th scope="col">time</th>
            {!ofTrial && <th scope="col">trial</th>}
            <th scope="col">kind</th>
            <th scope="col" className="number">slots</th>
            <th scope="col">promise</th>
            <th scope="col" className="number">{measured ? "speedup foretold" : "speedup"}</th>
            {measured && <th scope="col" className="number">measured since</th>}
            <th scope="col" className="number">gain</th>
            <th scope="col" className="number">cost</th>
            <th scope="col">slots from</th>
            <th scope="col">why</th>
          </tr>
        </thead>
        <tbody>
          {decisions.map((decision) => <Row key={decision.cursor} decision={decision} ofTrial={ofTrial} measured={measured} now={now} />)}
        </tbody>
      </table>
    </div>
  );
}

interface RowProps {
  decision: Decision;
  ofTrial: boolean;
  measured: ReadonlyMap<string | number, number> | undefined;
  now: number;
}

function Row({decision, ofTrial, measured, now}: RowProps) {
  const {figures, trial, study_id: study} = decision;
  return (
    <tr>
      <th scope="row" className="time">{time(decision.at, now)}</th>
      {!ofTrial && <td>{trial === null ? "all" : <Link to={addressOf.trial(study, trial)}>{trial}</Link>}</td>}
      <td>{decision.kind}</td>
      <td className="number">
        {decision.from_slots === decision.to_slots ? decision.to_slots : `${decision.from_slots} → ${decision.to_slots}`}
      </td>
      <td>{figures === null || figures.promise === null ? "–" : <PartBar part={figures.promise} />}</td>
      <td className="number">
        {figures === null || figures.speedup_after === null ? "–"
          : `${number(figures.speedup_before)} → ${number(figures.speedup_after)}`}
      </td>
      {measured && <td className="number">{number(measured.get(decision.cursor))}</td>}
      <td className="number">{number(figures?.gain ?? null)}</td>
      <td className="number">{duration(figures?.resize_cost_s ?? null)}</td>
      <td>
        {(figures?.from ?? []).map((from) => (
          <span className="from" key={from.trial_id}>
            <OtherTrial of={from} /> ({from.slots}
            {from.promise === null ? "" : `, promise ${number(from.promise, 2)}`})
          </span>
        ))}
      </td>
      <td className="reason"><bdi>{visible(decision.reason)}</bdi></td>
    </tr>
  );
}
