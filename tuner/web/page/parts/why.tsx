// Why a trial had as many slots as it had at a moment: the decision that held then, with its figures.

import type {Decision, Decisions} from "../contract";
import {duration, number, time, visible} from "../format";
import {told} from "../plot/lanes";
import {useAnswer} from "../store";
import {addressOf} from "../url";
import {Link} from "./link";
import {Name} from "./name";
import {OtherTrial} from "./other_trial";
import {Problem} from "./problem";

const LIMIT = 500;
/** What is stored of a decision and what follows from it are not of the same moment. */
const SLACK_S = 1.5;

export function WhyCard({trial_id, at, now, onClose}: {trial_id: number; at: number; now: number; onClose: () => void}) {
  const {data, error, loading} = useAnswer<Decisions>(`/api/view/decisions?trial=${trial_id}&limit=${LIMIT}`,
    (event) => event.decisions);
  const all = data?.decisions ?? [];
  // Newest first.
  const index = Math.max(0, all.findIndex((decision) => decision.at <= at + SLACK_S));
  const decision = all[index];
  return (
    <section className="why" aria-label="Why">
      <button type="button" className="round why-close" aria-label="Close" onClick={onClose}>✕</button>
      {error && <Problem error={error} what="The decision" />}
      {!decision && !error && <p className="muted">{loading ? "Reading…" : "No decision about this trial is recorded."}</p>}
      {decision && <Told decision={decision} now={now} />}
      {all.length > 1 && <p className="muted">{others(all.length - index - 1, index)} about this trial.</p>}
    </section>
  );
}

function others(earlier: number, later: number): string {
  const parts = [[earlier, "earlier"], [later, "later"]].filter(([number]) => number !== 0);
  return parts.map(([number, word]) => `${number} ${word}`).join(" and ") + (earlier + later === 1 ? " decision" : " decisions");
}

function Told({decision, now}: {decision: Decision; now: number}) {
  const {figures} = decision;
  return (
    <>
      <p>
        <span className="muted">{time(decision.at, now)}</span>{" "}
        <b>trial {decision.trial} of <Name of={decision.study} most={40} /> {told(decision.kind)}</b>
        {decision.from_slots !== decision.to_slots && <> {decision.from_slots} → {decision.to_slots} slots</>}
      </p>
      {decision.reason && <p className="why-reason">{visible(decision.reason)}</p>}
      {figures && (
        <dl className="figures">
          <Figure name="promise" value={figures.promise} />
          {figures.speedup_after !== null && (
            <div><dt>speedup</dt><dd>{number(figures.speedup_before)} → {number(figures.speedup_after)}</dd></div>
          )}
          <Figure name="gain" value={figures.gain} />
          {figures.resize_cost_s !== null && <div><dt>cost</dt><dd>{duration(figures.resize_cost_s)}</dd></div>}
          {figures.from.length > 0 && (
            <div>
              <dt>from</dt>
              <dd>
                {figures.from.map((other, at) => (
                  <span key={other.trial_id}>
                    {at > 0 && ", "}
                    <OtherTrial of={other} />{" "}
                    ({other.slots} {other.slots === 1 ? "slot" : "slots"}{other.promise === null ? "" : `, promise ${number(other.promise)}`})
                  </span>
                ))}
              </dd>
            </div>
          )}
        </dl>
      )}
      <p className="why-links">
        {decision.trial !== null && <Link to={addressOf.trial(decision.study_id, decision.trial)}>trial {decision.trial}</Link>}
        <Link to={addressOf.study(decision.study_id)}><Name of={decision.study} most={40} /></Link>
      </p>
    </>
  );
}

function Figure({name, value}: {name: string; value: number | null}) {
  return value === null ? null : <div><dt>{name}</dt><dd>{number(value)}</dd></div>;
}
