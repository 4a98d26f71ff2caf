// Several objectives: each complete trial by two of them, and the trials that no other is better than in every one.

import {useMemo} from "react";

import type {Front, Study} from "../../../contract";
import {count, number, visible} from "../../../format";
import {Problem} from "../../../parts/problem";
import {type Frame, Plot} from "../../../plot/plot";
import type {Style} from "../../../plot/style";
import {useAnswer} from "../../../store";
import type {Trials} from "../../../table/use_trials";
import {useQuery} from "../../../url";
import {ChooseDimension} from "./choose_dimension";
import {type Dimension, valueDimension} from "./dimensions";
import {DOT_PX, type Place, axisOf, dot, nearestDot, ring, stepped} from "./dots";
import {frontEdge} from "./front";

const HEIGHT = 300;
const NONE: readonly number[] = [];
const NOT_TOLD = 404;

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
  const best = front.data?.trials.map(({trial}) => trial) ?? NONE;
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
        : <FrontPlot study={study} across={across} up={up} trials={trials} rows={complete} best={best} onOpen={onOpen} />}
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
  const paint = (context: CanvasRenderingContext2D, frame: Frame, style: Style) => paintFront(context, frame, style, points, edge);
  const values = (point: Point) => `${visible(across.label)} ${number(point.x, 4)}\n${visible(up.label)} ${number(point.y, 4)}`;
  const onFront = points.filter((point) => point.onFront).length;
  return (
    <Plot<number>
      label={`${visible(up.label)} by ${visible(across.label)}`}
      summary={`${count(points.length)} complete trials; ${onFront === 0 ? "the best are not among them"
        : `no other is better in all objectives than the ${onFront === 1 ? "one with a large dot" : `${count(onFront)} that the line joins`}`}. ${wish(study, across)}, ${wish(study, up)}.`}
      height={HEIGHT} x={x} y={y} paint={paint} find={(px, py, frame) => nearestDot(points, px, py, frame)}
      paintCursor={(context, frame, style, place) => points[place] && ring(context, frame, points[place]!, style)}
      step={(place, move) => stepped(points.length, place, move)}
      place={(place, frame) => [frame.x(points[place]?.x ?? 0), frame.y(points[place]?.y ?? 0)]}
      describe={(place) => points[place] ? `trial ${points[place]!.trial}${points[place]!.onFront ? ", among the best" : ""}\n${
        values(points[place]!)}` : ""}
      onOpen={(place) => points[place] && onOpen(points[place]!.trial)}
      table={() => ({columns: ["Trial", visible(across.label), visible(up.label), "Among the best"],
                     rows: points.map((point) => [point.trial, number(point.x, 4), number(point.y, 4), point.onFront ? "yes" : "no"])})}
    />
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
    const point = {trial, x: store.number(across.column, row), y: store.number(up.column, row), onFront: best.has(trial)};
    if (Number.isFinite(point.x) && Number.isFinite(point.y)) points.push(point);
  }
  return points.sort((a, b) => a.x - b.x || a.y - b.y);
}

/** The best are larger, and joined: never told by colour alone. */
export function paintFront(context: CanvasRenderingContext2D, frame: Frame, style: Style, points: readonly (Place & {onFront: boolean})[],
                           edge: readonly Place[]): void {
  context.globalAlpha = points.length > 1000 ? 0.5 : 0.9;
  for (const point of points) if (!point.onFront) dot(context, frame, point, style.muted, DOT_PX - 0.5);
  context.globalAlpha = 1;
  context.strokeStyle = style.accent;
  context.lineWidth = 1.5;
  context.beginPath();
  edge.forEach((corner, i) => (i === 0 ? context.moveTo(frame.x(corner.x), frame.y(corner.y))
    : context.lineTo(frame.x(corner.x), frame.y(corner.y))));
  context.stroke();
  for (const point of points) if (point.onFront) dot(context, frame, point, style.accent, DOT_PX + 1);
}
