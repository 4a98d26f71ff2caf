// Several objectives: each complete trial by two of them, and the trials that no other is better than in every one.

import {useCallback, useMemo} from "react";

import type {Front, Study} from "../../../contract";
import {count, number, visible} from "../../../format";
import {Link} from "../../../parts/link";
import {Name} from "../../../parts/name";
import {Problem} from "../../../parts/problem";
import {type Frame, Plot} from "../../../plot/plot";
import type {Style} from "../../../plot/style";
import {useAnswer} from "../../../store";
import type {Trials} from "../../../table/use_trials";
import {objectiveName} from "../../../table/columns";
import {addressOf, useQuery} from "../../../url";
import {ChooseDimension} from "./choose_dimension";
import {type Dimension, valueDimension} from "./dimensions";
import {DOT_PX, type Place, axisOf, dot, nearestDot, ring, stepped} from "./dots";
import {bestFirst, frontEdge} from "./front";

const HEIGHT = 300;
const NONE: readonly number[] = [];
const NOT_TOLD = 404;
const MOST_LISTED = 200;

interface FrontPanelProps {
  study: Study;
  trials: Trials;
  /** Those that the filters leave. */
  rows: Uint32Array;
  onOpen: (trial: number) => void;
}

interface Point extends Place {
  trial: number;
  onFront: boolean;
  /** It breaks a constraint. */
  infeasible: boolean;
}

export function FrontPanel({study, trials, rows, onOpen}: FrontPanelProps) {
  const {store, version} = trials;
  const front = useAnswer<Front>(`/api/view/studies/${study.id}/analysis?what=pareto`, (event) => event.studies.includes(study.id));
  const complete = useMemo(() => rows.filter((row) => store.word("state", row) === "complete"),
                           [store, version, rows]); // eslint-disable-line react-hooks/exhaustive-deps
  const objectives = useMemo(() => study.directions.map((_, objective) => valueDimension(study, store, complete, objective))
    .filter((one): one is Dimension => one !== null), [study, store, complete]);
  const [first, setFirst] = useQuery("fx", "");
  const [second, setSecond] = useQuery("fy", "");
  const across = objectives.find(({column}) => column === first) ?? objectives[0];
  const up = objectives.find((one) => one.column === second && one !== across) ?? objectives.find((one) => one !== across);
  const best = useMemo(() => front.data?.trials.map(({trial}) => trial) ?? NONE, [front.data]);
  if (front.data === null && front.error?.status === NOT_TOLD) return null; // By a source that tells nothing of it.
  return (
    <section className="panel" aria-label="Best trials">
      <header className="panel-head">
        <h2>Best trials of {study.directions.length} objectives</h2>
        {objectives.length > 2 && across !== undefined && up !== undefined && (
          <>
            <ChooseDimension label="across" of={objectives} chosen={across} onChoose={setFirst} />
            <ChooseDimension label="up" of={objectives.filter((one) => one !== across)} chosen={up} onChoose={setSecond} />
          </>
        )}
      </header>
      {front.error !== null && front.data === null && <Problem error={front.error} what="The best trials" />}
      {across === undefined || up === undefined
        ? <p className="empty">{trials.total === null ? "Reading …" : "No trial is complete yet."}</p>
        : (
          <div className="front">
            <FrontPlot study={study} across={across} up={up} trials={trials} rows={complete} best={best} onOpen={onOpen} />
            {front.data !== null && front.data.trials.length > 0 && <FrontList study={study} of={front.data.trials} />}
          </div>
        )}
    </section>
  );
}

interface FrontPlotProps extends FrontPanelProps {
  across: Dimension;
  up: Dimension;
  /** Numbers of the trials of the front. */
  best: readonly number[];
}

function FrontPlot({study, across, up, trials, rows, best, onOpen}: FrontPlotProps) {
  const {store, version} = trials;
  const points = useMemo(() => pointsOf(trials, rows, across, up, new Set(best)),
                         [store, version, rows, across, up, best]); // eslint-disable-line react-hooks/exhaustive-deps
  const x = useMemo(() => axisOf(across), [across]);
  const y = useMemo(() => axisOf(up), [up]);
  const edge = useMemo(() => frontEdge(points.filter(({onFront}) => onFront), maximized(study, across), maximized(study, up)),
                       [points, study, across, up]);
  const paint = useCallback((context: CanvasRenderingContext2D, frame: Frame, style: Style) =>
    paintFront(context, frame, style, points, edge), [points, edge]);
  const values = (point: Point) => `${visible(across.label)} ${number(point.x, 4)}\n${visible(up.label)} ${number(point.y, 4)}`;
  const onFront = points.filter((point) => point.onFront).length;
  const breaking = points.filter((point) => point.infeasible).length;
  return (
    <Plot<number>
      label={`${visible(up.label)} by ${visible(across.label)}`}
      summary={`${count(points.length)} complete trials; ${onFront === 0 ? "the best are not among them"
        : `no other is better in all objectives than the ${onFront === 1 ? "one with a large dot" : `${count(onFront)} that the line joins`}`}${breaking === 0 ? "" : `; ${count(breaking)} with a cross ${breaking === 1 ? "breaks" : "break"} a constraint`}. ${wish(study, across)}, ${wish(study, up)}.`}
      height={HEIGHT} x={x} y={y} paint={paint} find={(px, py, frame) => nearestDot(points, px, py, frame)}
      paintCursor={(context, frame, style, place) => points[place] && ring(context, frame, points[place]!, style)}
      step={(place, move) => stepped(points.length, place, move)}
      place={(place, frame) => [frame.x(points[place]?.x ?? 0), frame.y(points[place]?.y ?? 0)]}
      describe={(place) => points[place] ? `trial ${points[place]!.trial}${mark(points[place]!)}\n${
        values(points[place]!)}` : ""}
      onOpen={(place) => points[place] && onOpen(points[place]!.trial)}
      table={() => ({columns: ["Trial", visible(across.label), visible(up.label), "Among the best"],
                     rows: points.map((point) => [point.trial, number(point.x, 4), number(point.y, 4),
                                                  point.onFront ? "yes" : point.infeasible ? "no, breaks a constraint" : "no"])})}
    />
  );
}

function mark(point: Point): string {
  return point.onFront ? ", among the best" : point.infeasible ? ", breaks a constraint" : "";
}

/** The front with all objectives, the best of the first one on top. */
function FrontList({study, of}: {study: Study; of: Front["trials"]}) {
  const rows = useMemo(() => bestFirst(of, study.directions[0] === "maximize").slice(0, MOST_LISTED), [of, study.directions]);
  return (
    <div className="table-frame" tabIndex={0} role="region" aria-label="The best trials, as a list">
      <table>
        <thead>
          <tr>
            <th scope="col">trial</th>
            {study.directions.map((direction, place) => (
              <th scope="col" className="number" key={place}><Name of={objectiveName(study, place)} most={24} /> {direction === "maximize" ? "↑" : "↓"}</th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((one) => (
            <tr key={one.trial_id}>
              <th scope="row"><Link to={addressOf.trial(study.id, one.trial)}>{one.trial}</Link></th>
              {study.directions.map((_, place) => <td className="number" key={place}>{number(one.values[place], 4)}</td>)}
            </tr>
          ))}
        </tbody>
      </table>
      {of.length > rows.length && <p className="empty">The first {count(rows.length)} of {count(of.length)}.</p>}
    </div>
  );
}

function maximized(study: Study, of: Dimension): boolean {
  return study.directions[of.column === "value" ? 0 : Number(of.column.slice("values:".length))] === "maximize";
}

function wish(study: Study, of: Dimension): string {
  return `${visible(of.label)} is ${maximized(study, of) ? "maximized" : "minimized"}`;
}

function pointsOf(trials: Trials, rows: Uint32Array, across: Dimension, up: Dimension, best: ReadonlySet<number>): Point[] {
  const {store} = trials;
  const points: Point[] = [];
  for (const row of rows) {
    const trial = store.number("number", row);
    const point = {trial, x: store.number(across.column, row), y: store.number(up.column, row), onFront: best.has(trial),
                   infeasible: store.word("infeasible", row) === "yes"};
    if (Number.isFinite(point.x) && Number.isFinite(point.y)) points.push(point);
  }
  return points.sort((a, b) => a.x - b.x || a.y - b.y);
}

/** The best are larger, and joined, and what breaks a constraint is a cross: never told by colour alone. */
export function paintFront(context: CanvasRenderingContext2D, frame: Frame, style: Style,
                           points: readonly (Place & {onFront: boolean; infeasible: boolean})[], edge: readonly Place[]): void {
  context.globalAlpha = points.length > 1000 ? 0.5 : 0.9;
  for (const point of points) if (!point.onFront && !point.infeasible) dot(context, frame, point, style.muted, DOT_PX - 0.5);
  context.strokeStyle = style.bad;
  context.lineWidth = 1.5;
  context.beginPath();
  for (const point of points) if (point.infeasible) cross(context, frame.x(point.x), frame.y(point.y));
  context.stroke();
  context.globalAlpha = 1;
  context.strokeStyle = style.accent;
  context.lineWidth = 1.5;
  context.beginPath();
  edge.forEach((corner, i) => (i === 0 ? context.moveTo(frame.x(corner.x), frame.y(corner.y))
    : context.lineTo(frame.x(corner.x), frame.y(corner.y))));
  context.stroke();
  for (const point of points) if (point.onFront) dot(context, frame, point, style.accent, DOT_PX + 1);
}

function cross(context: CanvasRenderingContext2D, x: number, y: number): void {
  context.moveTo(x - DOT_PX, y - DOT_PX);
  context.lineTo(x + DOT_PX, y + DOT_PX);
  context.moveTo(x - DOT_PX, y + DOT_PX);
  context.lineTo(x + DOT_PX, y - DOT_PX);
}
