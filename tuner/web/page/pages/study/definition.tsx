// What the study is: its search space, its limits and the file that defines it.

import type {Parameter, Study} from "../../contract";
import {count, duration, money, number, visible} from "../../format";
import {Name} from "../../parts/name";

export function DefinitionTab({study}: {study: Study}) {
  const {limits} = study;
  const attributes = [...Object.entries(study.attributes.user), ...Object.entries(study.attributes.system)];
  return (
    <>
      <section className="panel" aria-label="Search space">
        <h2>Search space</h2>
        <Parameters of={study.parameters} />
      </section>
      <section className="panel" aria-label="How it is run">
        <h2>How it is run</h2>
        <dl className="facts">
          <Fact name={study.directions.length > 1 ? "objectives" : "metric"}>
            {study.metric === null ? "none"
              : study.metrics.length > 1
                ? study.metrics.map((name, place) => <div key={name}><Name of={name} />, {study.directions[place]}</div>)
                : <><Name of={study.metric} />, {study.directions.join(", ")}</>}
          </Fact>
          {study.constraints.length > 0 && (
            <Fact name="constraints">{study.constraints.map((one) => <div key={one}><Name of={one} /></div>)}</Fact>
          )}
          <Fact name="sampler">{visible(study.sampler)}</Fact>
          <Fact name="pruner">{visible(study.pruner)}</Fact>
          <Fact name="policy">{visible(study.policy)}</Fact>
          <Fact name="trials at most">{count(limits.trials)}</Fact>
          <Fact name="time at most">{duration(limits.time_s)}</Fact>
          <Fact name="cost at most">{money(limits.cost)}</Fact>
          <Fact name="until a value of">{number(limits.target, 6)}</Fact>
          {attributes.map(([name, value]) => (
            <Fact key={name} name={name}>{visible(typeof value === "string" ? value : JSON.stringify(value) ?? "")}</Fact>
          ))}
        </dl>
      </section>
      <section className="panel" aria-label="Study file">
        <h2>Study file</h2>
        <pre className="file" tabIndex={0} aria-label="the study file">{definitionText(study.definition)}</pre>
      </section>
    </>
  );
}

export function definitionText(definition: unknown): string {
  return visible(typeof definition === "string" ? definition : JSON.stringify(definition, null, 2) ?? "", true);
}

export function Fact({name, children}: {name: string; children: React.ReactNode}) {
  return (
    <div className="fact">
      <dt><Name of={name} most={40} /></dt>
      <dd>{children}</dd>
    </div>
  );
}

function Parameters({of}: {of: readonly Parameter[]}) {
  if (of.length === 0) return <p className="empty">It has none.</p>;
  return (
    <div className="table-frame" tabIndex={0} role="region" aria-label="Parameters, as a table">
      <table>
        <thead>
          <tr><th scope="col">parameter</th><th scope="col">kind</th><th scope="col">values</th></tr>
        </thead>
        <tbody>
          {of.map((parameter) => (
            <tr key={parameter.name}>
              <th scope="row"><Name of={parameter.name} /></th>
              <td>{parameter.kind}{parameter.log ? ", logarithmic" : ""}</td>
              <td>{valuesOf(parameter)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function valuesOf(parameter: Parameter): string {
  if (parameter.kind === "choice") return parameter.choices.map((choice) => visible(choice)).join(", ");
  return `${number(parameter.low)} to ${number(parameter.high)}`;
}
