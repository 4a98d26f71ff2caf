// A trial in figures: what it has, what it is run with, where it runs.

import type {Study, Trial} from "../../contract";
import {count, duration, number, time, visible} from "../../format";
import {Name} from "../../parts/name";
import {store} from "../../store";
import {objectiveName} from "../../table/columns";
import {Fact} from "../study/definition";

export function TrialFacts({trial, study, onPool}: {trial: Trial; study: Study; onPool: boolean}) {
  const now = store.now();
  const several = study.directions.length > 1;
  return (
    <div className="tiles">
      {several ? trial.values.map((value, i) => (
        <Tile key={i} value={number(value, 4)} what={`${visible(objectiveName(study, i))}, ${study.directions[i] ?? ""}d`} />
      )) : <Tile value={number(trial.value, 4)} what={visible(study.metric ?? "value")} />}
      <Constraints trial={trial} />
      <Tile value={count(trial.step)} what="step" />
      {onPool && (
        <>
          <Tile value={count(trial.slots)} what={trial.pinned === null ? "slots" : `slots, pinned at ${trial.pinned}`} />
          <Tile value={trial.promise === null ? "–" : trial.promise.toFixed(2)} what="promise" />
          <Tile value={number(trial.goodput)} what="goodput" />
          <Tile value={count(trial.batch_size)} what="batch size" />
          <Tile value={number(trial.throughput)} what="samples a second" />
          <Tile value={number(trial.learning_rate)} what="learning rate" />
          <Tile value={number(trial.noise_scale)} what="noise scale" />
          <Tile value={duration(trial.slot_seconds)} what="of slots used" />
        </>
      )}
      <Tile value={trial.started_at === null ? "–" : duration((trial.ended_at ?? now) - trial.started_at)}
            what={whenOf(trial, now)} />
    </div>
  );
}

const KEPT = new Map([[true, {sign: "⊘", says: "breaks "}], [false, {sign: "✔", says: "keeps to "}], [null, {sign: "–", says: "has not told yet of "}]]);

/** What it has to keep, and whether it does. Of those that its client tells, their numbers are among its attributes. */
function Constraints({trial}: {trial: Trial}) {
  const told = trial.infeasible === null ? [] : [{text: "what it has to", figure: null, broken: trial.infeasible}];
  return (
    <>
      {(trial.constraints.length > 0 ? trial.constraints : told).map(({text, figure, broken}) => {
        const {sign, says} = KEPT.get(broken)!;
        return (
          <div className="tile" key={text}>
            <b className={broken === true ? "bad" : undefined}><span aria-hidden="true">{sign}</span> {figure !== null && number(figure, 4)}</b>
            <span>{says}<Name of={text} most={60} /></span>
          </div>
        );
      })}
    </>
  );
}

function whenOf(trial: Trial, now: number): string {
  if (trial.started_at === null) return "not started";
  const ended = trial.ended_at === null ? "" : `, ended ${time(trial.ended_at, now)}`;
  return `since ${time(trial.started_at, now)}${ended}`;
}

function Tile({value, what}: {value: string; what: string}) {
  if (value === "–" && what !== "not started") return null;
  return <div className="tile"><b>{value}</b><span>{what}</span></div>;
}

export function valueText(value: unknown): string {
  if (typeof value === "number") return number(value, 6);
  return visible(typeof value === "string" ? value : JSON.stringify(value) ?? "");
}

export function Parameters({trial, study}: {trial: Trial; study: Study}) {
  const own = Object.keys(trial.parameters);
  const given = new Set(own);
  const names = [...new Set([...study.parameters.map(({name}) => name).filter((name) => given.has(name)), ...own])];
  return (
    <section className="panel" aria-label="Parameters">
      <h2>Parameters</h2>
      {names.length === 0 ? <p className="empty">It has none.</p> : (
        <dl className="facts">
          {names.map((name) => <Fact key={name} name={name}>{valueText(trial.parameters[name])}</Fact>)}
        </dl>
      )}
    </section>
  );
}

export function Attributes({trial}: {trial: Trial}) {
  const all = [...Object.entries(trial.user_attributes), ...Object.entries(trial.system_attributes)];
  if (all.length === 0) return null;
  return (
    <section className="panel" aria-label="Attributes">
      <h2>Attributes</h2>
      <dl className="facts">
        {all.map(([name, value]) => <Fact key={name} name={name}>{valueText(value).slice(0, 2000)}</Fact>)}
      </dl>
    </section>
  );
}

export function Replicas({trial}: {trial: Trial}) {
  return (
    <section className="panel" aria-label="Replicas">
      <h2>Replicas</h2>
      {trial.replicas.length === 0 ? <p className="empty">None runs now.</p> : (
        <div className="table-frame" tabIndex={0} role="region" aria-label="Replicas, as a table">
          <table>
            <thead>
              <tr>
                <th scope="col">rank</th><th scope="col">node</th><th scope="col" className="number">slot</th>
                <th scope="col" className="number">process</th><th scope="col">a step takes</th>
              </tr>
            </thead>
            <tbody>
              {trial.replicas.map((replica, i) => (
                <tr key={i}>
                  <th scope="row">{replica.rank ?? "–"}</th>
                  <td><Name of={replica.node} most={30} /></td>
                  <td className="number">{replica.slot}</td>
                  <td className="number">{replica.pid ?? "–"}</td>
                  <td className={replica.slow !== null && replica.slow >= 1.3 ? "warn" : undefined}>
                    {replica.slow === null ? "–" : `${number(replica.slow, 2)} × the others'`}
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </section>
  );
}
