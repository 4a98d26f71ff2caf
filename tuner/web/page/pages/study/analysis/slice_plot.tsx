// The value over one parameter: a dot for each trial.

import {useMemo} from "react";

import {count, number, visible} from "../../../format";
import {type Frame, Plot} from "../../../plot/plot";
import {type Style, markColor} from "../../../plot/style";
import type {TrialsStore} from "../../../table/trials_store";
import type {Dimension} from "./dimensions";
import {DOT_PX, type Place, axisOf, cellText, coordinateOf, dot, nearestDot, ring, stepped} from "./dots";

const HEIGHT = 240;

interface SlicePlotProps {
  of: Dimension;
  value: Dimension;
  trials: TrialsStore;
  version: number;
  rows: Uint32Array;
  best: number | null;
  onOpen: (trial: number) => void;
}

export function SlicePlot({of, value, trials, version, rows, best, onOpen}: SlicePlotProps) {
  const points = useMemo(() => Array.from(rows, (row) => ({
    row, trial: trials.number("number", row), id: trials.number("id", row), x: coordinateOf(of, trials, row),
    y: trials.number(value.column, row)})).filter(({x, y}) => Number.isFinite(x) && Number.isFinite(y))
    .sort((a, b) => a.x - b.x || a.y - b.y), [of, value, trials, version, rows]); // eslint-disable-line react-hooks/exhaustive-deps
  const x = useMemo(() => axisOf(of), [of]);
  const y = useMemo(() => axisOf(value), [value]);
  const paint = (context: CanvasRenderingContext2D, frame: Frame, style: Style) => paintSlice(context, frame, style, points, best);
  return (
    <Plot<number>
      label={`${visible(value.label)} by ${visible(of.label)}`}
      summary={`${count(points.length)} trials; the stronger a dot, the later the trial.`}
      height={HEIGHT} x={x} y={y} paint={paint} find={(px, py, frame) => nearestDot(points, px, py, frame)}
      paintCursor={(context, frame, style, place) => points[place] && ring(context, frame, points[place]!, style)}
      step={(place, move) => stepped(points.length, place, move)}
      place={(place, frame) => [frame.x(points[place]?.x ?? 0), frame.y(points[place]?.y ?? 0)]}
      describe={(place) => points[place] ? `trial ${points[place]!.trial}\n${visible(of.label)} ${cellText(of, trials, points[place]!.row)}\n${
        visible(value.label)} ${number(points[place]!.y, 4)}` : ""}
      onOpen={(place) => points[place] && onOpen(points[place]!.trial)}
      table={() => ({columns: ["Trial", visible(of.label), visible(value.label)],
                     rows: points.map((point) => [point.trial, cellText(of, trials, point.row), number(point.y, 4)])})}
    />
  );
}

export function paintSlice(context: CanvasRenderingContext2D, frame: Frame, style: Style, points: readonly (Place & {id: number; trial: number})[],
                           best: number | null): void {
  const most = points.reduce((latest, {trial}) => Math.max(latest, trial), 1);
  context.globalAlpha = points.length > 1000 ? 0.5 : 0.9;
  for (const point of points) dot(context, frame, point, markColor(style, point.trial / most), DOT_PX);
  context.globalAlpha = 1;
  const top = points.find(({id}) => id === best);
  if (top) ring(context, frame, top, style);
}
