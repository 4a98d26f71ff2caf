import {useMemo} from "react";

import type {StudyRow, TrialCounts} from "../../contract";
import {count, duration, money, number, time, visible, shortened} from "../../format";
import {Link} from "../../parts/link";
import {Name} from "../../parts/name";
import {State} from "../../parts/state";
import {told} from "../../plot/lanes";
import {addressOf, useQuery} from "../../url";
import {BestSparkline} from "./best_sparkline";

const FIRST = 50;
/** Of the first ones alone: each is a request. */
const SPARKLINES = 20;
const LONGEST_REASON = 90;

export function StudiesTable({studies, now}: {studies: readonly StudyRow[]; now: number}) {
  const [all, setAll] = useQuery("studies", "");
  const sorted = useMemo(() => [...studies].sort(runningFirst), [studies]);
  const shown = all ? sorted : sorted.slice(0, FIRST);
  const withMoney = studies.some((study) => study.spent !== null);
  return (
    <section className="panel" aria-labelledby="studies-head">
      <div className="panel-head"><h2 id="studies-head">Studies</h2></div>
      {studies.length === 0 ? (
        <p className="empty">No study yet: <code>tuner submit study.json</code> sends one.</p>
      ) : (
        <div className="table-frame" tabIndex={0} role="region" aria-label="Studies">
          <table className="studies">
            <thead>
              <tr>
                <th scope="col">Study</th><th scope="col">State</th><th scope="col">Trials</th>
                <th scope="col" className="number">Best</th><th scope="col" className="number">Slots</th>
                <th scope="col" className="number">Left</th>{withMoney && <th scope="col" className="number">Spent</th>}
                <th scope="col">Decided last</th>
              </tr>
            </thead>
            <tbody>{shown.map((study, place) => (
              <Row key={study.id} study={study} now={now} withMoney={withMoney} withLine={place < SPARKLINES} />
            ))}</tbody>
          </table>
        </div>
      )}
      {sorted.length > FIRST && (
        <button type="button" className="plain" aria-expanded={all !== ""} onClick={() => setAll(all ? "" : "all")}>
          {all ? `The first ${FIRST}` : `All ${count(sorted.length)}`}
        </button>
      )}
    </section>
  );
}

function runningFirst(a: StudyRow, b: StudyRow): number {
  return Number(b.state === "running") - Number(a.state === "running") || b.created_at - a.created_at || b.id - a.id;
}

function Row({study, now, withMoney, withLine}: {study: StudyRow; now: number; withMoney: boolean; withLine: boolean}) {
  const last = study.last_decision;
  return (
    <tr>
      <th scope="row">
        <Link to={addressOf.study(study.id)}><Name of={study.name} most={48} /></Link>
        {study.kind !== "pool" && <span className="muted"> ({study.kind})</span>}
        {study.notices.map((notice) => <div key={notice} className="warn notice">{visible(notice)}</div>)}
      </th>
      <td><State of={study.state} /></td>
      <td><Progress trials={study.trials} total={study.total} /><KeptLine kept={study.kept} /></td>
      <td className="number best">
        {withLine && <BestSparkline study={study} now={now} />}
        {study.best && study.best.value !== null ? (
          <Link to={addressOf.trial(study.id, study.best.trial)}>{number(study.best.value)}</Link>
        ) : "–"}
        {study.metric !== null && (
          <>
            <span className="muted" title={`${visible(study.metric)} is ${study.direction}d`} aria-hidden="true">
              {study.direction === "maximize" ? " ↑" : " ↓"}
            </span>
            <div className="muted small"><Name of={study.metric} most={20} /></div>
          </>
        )}
      </td>
      <td className="number">{count(study.slots)}</td>
      <td className="number">{study.remaining_s === null || study.ended_at !== null ? "–" : duration(study.remaining_s)}</td>
      {withMoney && <td className="number">{money(study.spent)}</td>}
      <td>
        {last && (
          <>
            <span className="muted">{time(last.at, now)}</span>{" "}
            {last.trial === null ? shortened(visible(last.reason), LONGEST_REASON)
              : <><Link to={addressOf.trial(study.id, last.trial)}>trial {last.trial}</Link> {told(last.kind)}</>}
            {last.from_slots !== last.to_slots && ` ${last.from_slots} → ${last.to_slots}`}
            {last.trial !== null && last.reason && <div className="muted small">{shortened(visible(last.reason), LONGEST_REASON)}</div>}
          </>
        )}
      </td>
    </tr>
  );
}

function KeptLine({kept}: {kept: StudyRow["kept"]}) {
  if (kept === null) return null;
  const told = kept.keep + kept.breaks;
  return (
    <div className="muted small">
      {told === 0 ? "none has told yet whether it keeps to its constraints" : `${count(kept.keep)} of ${count(told)} keep to their constraints`}
    </div>
  );
}

const PARTS: readonly (readonly [keyof TrialCounts, string])[] =
  [["complete", "good"], ["pruned", "cut"], ["failed", "bad"], ["running", "run"]];

/** How far a study is: a bar of what has become of its trials, and the numbers. */
function Progress({trials, total}: {trials: TrialCounts; total: number | null}) {
  const done = trials.complete + trials.pruned + trials.failed;
  const known = done + trials.running + trials.paused + trials.waiting;
  const whole = Math.max(1, total ?? known, known);
  let x = 0;
  return (
    <div className="progress">
      <svg width="100" height="10" viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true">
        <rect className="rest" x="0" y="0" width="100" height="10" />
        {PARTS.map(([state, kind]) => {
          const width = (trials[state] / whole) * 100;
          const left = x;
          x += width;
          return <rect key={state} className={kind} x={left} y="0" width={width} height="10" />;
        })}
      </svg>
      <span>
        {total === null ? count(done) : `${count(done)} of ${count(total)}`}
        <span className="muted small">
          {trials.running > 0 && `, ${count(trials.running)} run`}
          {trials.pruned > 0 && `, ${count(trials.pruned)} pruned`}
        </span>
        {trials.failed > 0 && <span className="bad small">, {count(trials.failed)} failed</span>}
      </span>
    </div>
  );
}
