// How much each parameter decided, as bars with their numbers.

import {useState} from "react";

import type {Importances, Study} from "../../../contract";
import {count, shortened, visible} from "../../../format";
import {Choices} from "../../../parts/choices";
import {Problem} from "../../../parts/problem";
import {DataTable} from "../../../plot/data_table";
import {useWidth} from "../../../plot/plot";
import {AnswerError} from "../../../store";
import {objectiveName} from "../../../table/columns";

const ROW_PX = 26;
const NAME_PX = 120;
const NUMBER_PX = 56;
const MOST_WIDTH_PX = 640;
const MOST_NAME = 16;
const FEW = 20;

interface ImportancePanelProps {
  study: Study;
  importances: Importances | null;
  error: AnswerError | null;
  objective: number;
  onObjective: (objective: number) => void;
}

export function ImportancePanel({study, importances, error, objective, onObjective}: ImportancePanelProps) {
  const [asTable, setAsTable] = useState(false);
  const of = importances?.objectives[objective]?.parameters ?? [];
  const objectives = study.directions.map((_, place) => [String(place), visible(objectiveName(study, place))] as const);
  return (
    <section className="panel" aria-label="Importance">
      <header className="panel-head">
        <h2>What decided</h2>
        {objectives.length > 1 && (
          <Choices label="" of={objectives} chosen={String(objective)} onChoose={(chosen) => onObjective(Number(chosen))} />
        )}
        {of.length > 0 && <button type="button" aria-pressed={asTable} onClick={() => setAsTable(!asTable)}>Table</button>}
      </header>
      {error !== null && importances === null && <Problem error={error} what="Importance" />}
      {importances !== null && of.length === 0 && <p className="empty">It takes two complete trials with parameters to tell.</p>}
      {of.length > 0 && (
        <>
          {asTable
            ? <DataTable label="Importance of the parameters" table={{columns: ["Parameter", "Importance"], rows: of.map(
                ({name, importance}) => [visible(name), percentText(importance)])}} />
            : <Bars of={of} />}
          <p className="muted">
            How far each parameter decided whether a trial came among the best tenth (PED-ANOVA), all together 100 %, from{" "}
            {count(importances?.complete)} complete trials.
            {(importances?.complete ?? 0) < FEW && " Of so few it says little yet."}
          </p>
        </>
      )}
    </section>
  );
}

function percentText(part: number | null): string {
  return part === null ? "–" : `${(100 * part).toFixed(part < 0.0995 ? 1 : 0)} %`;
}

function Bars({of}: {of: Importances["objectives"][number]["parameters"]}) {
  const [box, outer] = useWidth();
  const width = Math.min(MOST_WIDTH_PX, outer);
  const most = Math.max(...of.map(({importance}) => importance ?? 0), 1e-9);
  const room = Math.max(1, width - NAME_PX - NUMBER_PX);
  const told = of.map(({name, importance}) => `${visible(name)} ${percentText(importance)}`).join(", ");
  return (
    <div ref={box}>
      <svg className="importance" role="img" aria-label={`Importance: ${told}`} width={width} height={of.length * ROW_PX}>
        {of.map(({name, importance}, place) => {
          const length = Math.max(1, ((importance ?? 0) / most) * room);
          const middle = place * ROW_PX + ROW_PX / 2;
          return (
            <g key={name}>
              <title>{visible(name)}</title>
              <text x={NAME_PX - 8} y={middle} textAnchor="end" dominantBaseline="central">{shortened(visible(name), MOST_NAME)}</text>
              <rect x={NAME_PX} y={middle - 8} width={length} height={16} rx={2} />
              <text x={NAME_PX + length + 6} y={middle} dominantBaseline="central" className="importance-number">
                {percentText(importance)}
              </text>
            </g>
          );
        })}
      </svg>
    </div>
  );
}
