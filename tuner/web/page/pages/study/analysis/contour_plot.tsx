// The value over two parameters: what lies between the trials as colours, the trials as dots on it.

import {useMemo} from "react";

import {count, number, visible} from "../../../format";
import {type Frame, Plot} from "../../../plot/plot";
import {type Style, rampColor} from "../../../plot/style";
import type {TrialsStore} from "../../../table/trials_store";
import {type Dimension, partOf} from "./dimensions";
import {axisOf, cellText, coordinateOf, dot, nearestDot, ring, stepped} from "./dots";
import {type Field, fieldOf} from "./field";

const HEIGHT = 300;
const COLUMNS = 112;
const ROWS = 64;
const MOST_POINTS = 1000;

interface ContourPlotProps {
  across: Dimension;
  up: Dimension;
  value: Dimension;
  trials: TrialsStore;
  version: number;
  rows: Uint32Array;
  best: number | null;
  maximize: boolean;
  onOpen: (trial: number) => void;
}

interface Point {
  id: number;
  trial: number;
  row: number;
  x: number;
  y: number;
  value: number;
}

export function ContourPlot({across, up, value, trials, version, rows, best, maximize, onOpen}: ContourPlotProps) {
  const points = useMemo(() => pointsOf(across, up, value, trials, rows),
                         [across, up, value, trials, version, rows]); // eslint-disable-line react-hooks/exhaustive-deps
  const field = useMemo(() => fieldOfPoints(points, across, up, trials), [points, across, up, trials]);
  const x = useMemo(() => axisOf(across), [across]);
  const y = useMemo(() => axisOf(up), [up]);
  const ends = useMemo(() => endsOf(points), [points]);
  const shade = (at: number) => {
    const part = ends.high > ends.low ? (at - ends.low) / (ends.high - ends.low) : 1;
    return Math.min(1, Math.max(0, maximize ? part : 1 - part));
  };
  const paint = (context: CanvasRenderingContext2D, frame: Frame, style: Style) => {
    paintField(context, frame, style, field, across, up, shade);
    for (const point of points) {
      dot(context, frame, point, style.panel, 4);
      dot(context, frame, point, rampColor(style, shade(point.value)), 3);
    }
    const top = points.find(({id}) => id === best);
    if (top) ring(context, frame, top, style);
  };
  return (
    <Plot<number>
      label={`${visible(value.label)} by ${visible(across.label)} and ${visible(up.label)}`}
      summary={`Faint to strong: ${visible(value.label)} from ${number(maximize ? ends.low : ends.high)} to ${
        number(maximize ? ends.high : ends.low)}, of ${count(points.length)} trials and between them; the best has a ring.`}
      height={HEIGHT} x={x} y={y} paint={paint} find={(px, py, frame) => nearestDot(points, px, py, frame)}
      paintCursor={(context, frame, style, place) => points[place] && ring(context, frame, points[place]!, style)}
      step={(place, move) => stepped(points.length, place, move)}
      place={(place, frame) => [frame.x(points[place]?.x ?? 0), frame.y(points[place]?.y ?? 0)]}
      describe={(place) => points[place] ? `trial ${points[place]!.trial}: ${number(points[place]!.value, 4)}\n${visible(across.label)} ${
        cellText(across, trials, points[place]!.row)}\n${visible(up.label)} ${cellText(up, trials, points[place]!.row)}` : ""}
      onOpen={(place) => points[place] && onOpen(points[place]!.trial)}
      table={() => ({columns: ["Trial", visible(across.label), visible(up.label), visible(value.label)],
                     rows: points.map((point) => [point.trial, cellText(across, trials, point.row), cellText(up, trials, point.row), number(point.value, 4)])})}
    />
  );
}

function pointsOf(across: Dimension, up: Dimension, value: Dimension, trials: TrialsStore, rows: Uint32Array): Point[] {
  const points: Point[] = [];
  for (const row of rows) {
    const point = {id: trials.number("id", row), trial: trials.number("number", row), row, x: coordinateOf(across, trials, row),
                   y: coordinateOf(up, trials, row), value: trials.number(value.column, row)};
    if (Number.isFinite(point.x) && Number.isFinite(point.y) && Number.isFinite(point.value)) points.push(point);
  }
  points.sort((a, b) => b.trial - a.trial);
  return points.slice(0, MOST_POINTS).sort((a, b) => a.x - b.x || a.y - b.y);
}

function fieldOfPoints(points: readonly Point[], across: Dimension, up: Dimension, trials: TrialsStore): Field | null {
  if (points.length < 3) return null;
  return fieldOf({
    x: Float64Array.from(points, (point) => placeIn(across, point.x, partOf(across, trials, point.row))),
    y: Float64Array.from(points, (point) => placeIn(up, point.y, partOf(up, trials, point.row))),
    value: Float64Array.from(points, (point) => point.value),
  }, across.words?.length ?? COLUMNS, up.words?.length ?? ROWS);
}

/** The middle of a choice's cell. */
function placeIn(of: Dimension, place: number, part: number): number {
  return of.words === null ? part : (place + 0.5) / of.words.length;
}

/** Without the outermost: what went wrong once must not make all others alike. */
function endsOf(points: readonly Point[]): {low: number; high: number} {
  const sorted = points.map(({value}) => value).sort((a, b) => a - b);
  const at = (part: number) => sorted[Math.round(part * (sorted.length - 1))] ?? NaN;
  return {low: at(0.02), high: at(0.98)};
}

export function paintField(context: CanvasRenderingContext2D, frame: Frame, style: Style, field: Field | null, across: Dimension, up: Dimension,
                    shade: (value: number) => number): void {
  if (field === null) return;
  const xs = edges(field.columns, across, frame.x);
  const ys = edges(field.rows, up, frame.y);
  context.globalAlpha = 0.6;
  for (let row = 0; row < field.rows; ++row) {
    for (let column = 0; column < field.columns; ++column) {
      const value = field.values[row * field.columns + column]!;
      if (Number.isNaN(value)) continue;
      context.fillStyle = rampColor(style, shade(value));
      const [left, right, bottom, top] = [xs[column]!, xs[column + 1]!, ys[row]!, ys[row + 1]!];
      context.fillRect(left, top, right - left, bottom - top);
    }
  }
  context.globalAlpha = 1;
}

/** In whole pixels, so that no seams are seen. */
function edges(cells: number, of: Dimension, scale: (value: number) => number): number[] {
  return Array.from({length: cells + 1}, (_, place) => {
    if (of.words !== null) return Math.round(scale(place - 0.5));
    const part = place / cells;
    const value = of.log ? Math.exp(Math.log(of.low) + part * (Math.log(of.high) - Math.log(of.low))) : of.low + part * (of.high - of.low);
    return Math.round(scale(value));
  });
}
