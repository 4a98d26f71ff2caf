// Where a clone comes from, and the clones of a trial.

import type {Lineage, TrialAnswer} from "../../contract";
import {count} from "../../format";
import {Link} from "../../parts/link";
import {Name} from "../../parts/name";
import {addressOf} from "../../url";
import {withoutCheckpoint} from "../study/lineage/lineage";
import {valueText} from "./trial_facts";

const MOST_CLONES = 50;

export function Origin({answer}: {answer: TrialAnswer}) {
  const {trial, clones} = answer;
  const to = (number: number) => <Link to={addressOf.trial(trial.study_id, number)}>trial {number}</Link>;
  if (trial.lineage === null && clones.length === 0) return null;
  return (
    <section className="note" aria-label="Lineage">
      {trial.lineage !== null && <From lineage={trial.lineage} state={trial.state} to={to} />}
      {clones.length > 0 && (
        <p>
          {clones.length === 1 ? "Its clone: " : `${count(clones.length)} clones of it: `}
          {clones.slice(0, MOST_CLONES).map((clone, at) => (
            <span key={clone.trial_id}>
              {at > 0 && ", "}{to(clone.trial)} {clone.step === null ? `(which ${withoutCheckpoint(clone.state)})` : `from step ${count(clone.step)}`}
            </span>
          ))}
          {clones.length > MOST_CLONES && ` and ${count(clones.length - MOST_CLONES)} more`}
        </p>
      )}
    </section>
  );
}

function From({lineage, state, to}: {lineage: Lineage; state: string; to: (number: number) => React.ReactNode}) {
  const set = Object.entries(lineage.set);
  return (
    <p>
      Clone of {to(lineage.parent)} {lineage.step === null ? `that ${withoutCheckpoint(state)}` : `at step ${count(lineage.step)}`}
      {set.length > 0 && ", with "}
      {set.map(([name, value], at) => (
        <span key={name}>
          {at > 0 && ", "}<Name of={name} most={40} /> = <bdi>{valueText(value).slice(0, 80)}</bdi>
          {Object.prototype.hasOwnProperty.call(lineage.was, name) && <> (there <bdi>{valueText(lineage.was[name]).slice(0, 80)}</bdi>)</>}
        </span>
      ))}.
      {lineage.founder !== lineage.parent && <> Its line began with {to(lineage.founder)}.</>}
    </p>
  );
}
