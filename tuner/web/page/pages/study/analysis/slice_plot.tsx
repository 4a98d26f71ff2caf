// The value over one parameter: a dot for each trial.

import {useMemo} from "react";

import {count, number, visible} from "../../../format";
import {type Frame, type Move, Plot} from "../../../plot/plot";
import type {AxisOf} from "../../../plot/scales";
import {type Style, markColor} from "../../../plot/style";
import type {TrialsStore} from "../../../table/trials_store";
import {type Dimension} from "./dimensions";

const REACH_PX = 14;
const DOT_PX = 3.5;
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

/** What a dimension has in the unit of its axis: a choice, its place. */
export function coordinateOf(of: Dimension, trials: TrialsStore, row: number): number {
  const cell = trials.cell(of.column, row);
  if (cell === null) return NaN;
  if (of.words === null) return typeof cell === "number" ? cell : NaN;
  const place = of.words.indexOf(String(cell));
  return place < 0 ? NaN : place;
}

export function axisOf(of: Dimension): AxisOf {
  if (of.words === null) {
    const room = of.log ? 0 : (of.high - of.low) * 0.05;
    const spread = of.log ? (of.high / of.low) ** 0.03 : 1;
    const grown = of.log ? [of.low / spread, of.high * spread] as const : [of.low - room, of.high + room] as const;
    return {kind: of.log ? "log" : "linear", domain: grown, label: visible(of.label)};
  }
  const words = of.words;
  return {kind: "linear", domain: [-0.5, words.length - 0.5], label: visible(of.label),
          format: (place) => (Number.isInteger(place) ? visible(words[place] ?? "").slice(0, 12) : "")};
}

export function SlicePlot({of, value, trials, version, rows, best, onOpen}: SlicePlotProps) {
  const points = useMemo(() => Array.from(rows, (row) => ({
    row, trial: trials.number("number", row), id: trials.number("id", row), x: coordinateOf(of, trials, row),
    y: trials.number(value.column, row)})).filter(({x, y}) => Number.isFinite(x) && Number.isFinite(y))
    .sort((a, b) => a.x - b.x || a.y - b.y), [of, value, trials, version, rows]); // eslint-disable-line react-hooks/exhaustive-deps
  const x = useMemo(() => axisOf(of), [of]);
  const y = useMemo(() => axisOf(value), [value]);
  const most = Math.max(1, ...points.map(({trial}) => trial));
  const paint = (context: CanvasRenderingContext2D, frame: Frame, style: Style) => {
    context.globalAlpha = points.length > 1000 ? 0.5 : 0.9;
    for (const point of points) dot(context, frame, point, markColor(style, point.trial / most), DOT_PX);
    context.globalAlpha = 1;
    const top = points.find(({id}) => id === best);
    if (top) ring(context, frame, top, style);
  };
  const find = (px: number, py: number, frame: Frame) => {
    let nearest: number | null = null;
    let away = REACH_PX ** 2;
    points.forEach((point, place) => {
      const distance = (frame.x(point.x) - px) ** 2 + (frame.y(point.y) - py) ** 2;
      if (distance < away) [nearest, away] = [place, distance];
    });
    return nearest;
  };
  const text = (point: {row: number}) => {
    const cell = trials.cell(of.column, point.row);
    return typeof cell === "number" ? number(cell, 4) : visible(cell ?? "–");
  };
  return (
    <Plot<number>
      label={`${visible(value.label)} by ${visible(of.label)}`}
      summary={`${count(points.length)} trials; the stronger a dot, the later the trial.`}
      height={HEIGHT} x={x} y={y} paint={paint} find={find}
      paintCursor={(context, frame, style, place) => points[place] && ring(context, frame, points[place]!, style)}
      step={(place, move) => stepped(points.length, place, move)}
      place={(place, frame) => [frame.x(points[place]?.x ?? 0), frame.y(points[place]?.y ?? 0)]}
      describe={(place) => points[place] ? `trial ${points[place]!.trial}\n${visible(of.label)} ${text(points[place]!)}\n${
        visible(value.label)} ${number(points[place]!.y, 4)}` : ""}
      onOpen={(place) => points[place] && onOpen(points[place]!.trial)}
      table={() => ({columns: ["Trial", visible(of.label), visible(value.label)],
                     rows: points.map((point) => [point.trial, text(point), number(point.y, 4)])})}
    />
  );
}

export function stepped(points: number, place: number | null, move: Move): number | null {
  if (points === 0) return null;
  if (place === null || move === "home") return 0;
  if (move === "end") return points - 1;
  return Math.min(points - 1, Math.max(0, place + (move === "left" || move === "down" ? -1 : 1)));
}

export function dot(context: CanvasRenderingContext2D, frame: Frame, at: {x: number; y: number}, color: string, radius: number): void {
  context.fillStyle = color;
  context.beginPath();
  context.arc(frame.x(at.x), frame.y(at.y), radius, 0, 2 * Math.PI);
  context.fill();
}

export function ring(context: CanvasRenderingContext2D, frame: Frame, at: {x: number; y: number}, style: Style): void {
  context.strokeStyle = style.accent;
  context.lineWidth = 2;
  context.beginPath();
  context.arc(frame.x(at.x), frame.y(at.y), DOT_PX + 3.5, 0, 2 * Math.PI);
  context.stroke();
}
