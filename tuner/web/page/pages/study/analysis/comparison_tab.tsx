// What became of a study under several policies, as a simulation's record has it: side by side.

import {duration, number, visible} from "../../../format";
import {DataTable} from "../../../plot/data_table";
import {SimulatedLanes} from "../../../plot/lanes";
import type {ComparedRun, Comparison} from "../../../record/contract";
import {FIGURES} from "./figures";

export function ComparisonTab({of}: {of: Comparison}) {
  const to = Math.max(...of.runs.map((run) => run.lanes?.to ?? 0));
  const columns = ["figure", ...(of.recorded === null ? [] : ["recorded"]), ...of.runs.map(nameOf)];
  return (
    <>
      <section className="panel" aria-label="Figures">
        <header className="panel-head"><h2>Side by side</h2></header>
        <DataTable label="Figures of the simulations" table={{columns: distinct(columns), rows: rowsOf(of)}} />
        {of.runs.some(({remarks}) => remarks.length > 0) && (
          <ul className="caveats">
            {of.runs.flatMap(({remarks}, run) => remarks.map((text) => <li key={`${run} ${text}`}><bdi>{visible(text)}</bdi></li>))}
          </ul>
        )}
      </section>
      {of.runs.map((run, place) => run.lanes !== null && (
        <section key={place} className="panel" aria-label={`Slots under ${nameOf(run)}`}>
          <header className="panel-head"><h2>Slots under <bdi>{nameOf(run)}</bdi></h2></header>
          <SimulatedLanes label={`Slots under ${nameOf(run)}`} lanes={run.lanes} to={to} />
        </section>
      ))}
    </>
  );
}

function nameOf(run: ComparedRun): string {
  return visible(run.policy) + (run.pruner === "" || run.pruner === "none" ? "" : `, ${visible(run.pruner)}`);
}

/** Names of columns tell them apart. */
function distinct(names: readonly string[]): string[] {
  return names.map((name, at) => (names.indexOf(name) === at ? name : `${name} (${at})`));
}

/** Those that the page has a word for, in its order, and then the others by their own names. */
function rowsOf(of: Comparison): (string | number)[][] {
  const all = [...(of.recorded === null ? [] : [of.recorded]), ...of.runs.map((run) => run.figures)];
  const known = new Map(FIGURES.map(([key, label, text]) => [key, {label, text}]));
  const there = new Set(all.flatMap((figures) => Object.keys(figures).filter((key) => figures[key] !== null)));
  const keys = [...[...known.keys()].filter((key) => there.has(key)), ...[...there].filter((key) => !known.has(key)).sort()];
  return keys.map((key) => {
    const plain = key.endsWith("_s") ? duration : (value: number | null) => number(value, 4);
    const {label, text} = known.get(key) ?? {label: key.replace(/_s$/, "").replaceAll("_", " "), text: plain};
    return [label, ...all.map((figures) => (figures[key] === null || figures[key] === undefined ? "–" : text(figures[key]!)))];
  });
}
