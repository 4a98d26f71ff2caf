// Which parameters the value depends on.

import type {Study, Versioned} from "../../../contract";
import {count, number} from "../../../format";
import {Name} from "../../../parts/name";
import {Problem} from "../../../parts/problem";
import type {Read} from "../../../store";

export interface Importance extends Omit<Versioned, "revision" | "incarnation"> {
  study_id: number;
  what: string;
  /** Of so many complete trials. */
  complete: number;
  objectives: {direction: string; parameters: {name: string; importance: number | null}[]}[];
}

export function ImportancePanel({study, read}: {study: Study; read: Read<Importance>}) {
  const {data, error, loading} = read;
  const some = data?.objectives.some(({parameters}) => parameters.length > 0) === true;
  return (
    <section className="panel" aria-label="Importance of parameters">
      <header className="panel-head">
        <h2>Importance of parameters</h2>
        {data !== null && some && <span className="muted">of {count(data.complete)} complete trials</span>}
      </header>
      {error !== null && <Problem error={error} what="The importance" />}
      {data !== null && !some && <p className="empty">It can be told once two trials are complete.</p>}
      {data === null && loading && <p className="empty">Reading …</p>}
      {data !== null && some && data.objectives.map((objective, i) => (
        <Objective key={i} name={study.directions.length > 1 ? `value ${i + 1}` : study.metric ?? "value"}
                   parameters={objective.parameters} />
      ))}
    </section>
  );
}

interface ObjectiveProps {
  name: string;
  parameters: Importance["objectives"][number]["parameters"];
}

function Objective({name, parameters}: ObjectiveProps) {
  return (
    <table className="importance">
      <caption>for <Name of={name} most={40} /></caption>
      <tbody>
        {parameters.map((parameter) => (
          <tr key={parameter.name}>
            <th scope="row"><Name of={parameter.name} most={30} /></th>
            <td>
              <span className="importance-bar" aria-hidden="true">
                <span style={{width: `${Math.round(100 * (parameter.importance ?? 0))}%`}} />
              </span>
            </td>
            <td className="number">{number(parameter.importance, 2)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
