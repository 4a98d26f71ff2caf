// What stands in a cell of a table of trials.

import type {ReactNode} from "react";

import {number, shortened, time, visible} from "../format";
import {Infeasible} from "../parts/kept";
import {State} from "../parts/state";
import {isTime} from "./columns";
import type {TrialsStore} from "./trials_store";

const MOST_LETTERS = 80;
const SERIES = 8;

/** The colour that a trial has in a picture: that of its id, unless few trials are told apart. */
export function Swatch({place}: {place: number}) {
  return <span className="swatch" aria-hidden="true" style={{background: `var(--c${(place % SERIES) + 1})`}} />;
}

/** A part of one, as a number and a bar. */
export function PartBar({part}: {part: number | null}) {
  if (part === null || Number.isNaN(part)) return <>–</>;
  const width = `${Math.round(100 * Math.max(0, Math.min(1, part)))}%`;
  return (
    <span className="part">
      <span className="part-bar" aria-hidden="true"><span style={{width}} /></span>
      <span className="part-number">{part.toFixed(2)}</span>
    </span>
  );
}

export function cellOf(trials: TrialsStore, column: string, row: number, now: number): ReactNode {
  const value = trials.cell(column, row);
  if (column === "promise") return <PartBar part={typeof value === "number" ? value : null} />;
  if (value === null) return "–";
  if (typeof value === "number") return isTime(column) ? time(value, now) : number(value, column === "value" ? 4 : 3);
  if (column === "state") return <State of={value} />;
  if (column === "infeasible") return <Infeasible of={value === "yes"} />;
  const shown = visible(value);
  return <bdi title={shown.length > MOST_LETTERS ? shown.slice(0, 2000) : undefined}>{shortened(shown, MOST_LETTERS)}</bdi>;
}
