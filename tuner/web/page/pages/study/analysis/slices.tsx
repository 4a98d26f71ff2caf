// The value over one parameter: a point for each trial.

import {useCallback, useMemo} from "react";

import {number, visible} from "../../../format";
import {fencedRange} from "../../../painters/curve_values";
import {type Frame, type Move, type Painter, Plot} from "../../../plot/plot";
import {rampColor} from "../../../plot/style";
import type {TrialsStore} from "../../../table/trials_store";
import {cellText} from "./cell_text";

const HEIGHT = 170;
const REACH = 14;
const DOT = 3;
const MANY = 3000;

export interface SliceProps {
  trials: TrialsStore;
  version: number;
  rows: Uint32Array;
  groups: Int8Array;
  column: string;
  label: string;
  log: boolean;
  metric: string;
  valueColumn: string;
  maximize: boolean;
  onOpen: (trial: number) => void;
}

export function Slice(props: SliceProps) {
  const {trials, version, rows, groups, column, valueColumn} = props;
  const {x, y, points, words} = useMemo(() => placesOf(trials, rows, column, valueColumn),
                                        [trials, version, rows, column, valueColumn]); // eslint-disable-line react-hooks/exhaustive-deps
  const range = useMemo(() => fencedRange(y, props.maximize), [y, props.maximize]);
  const xAxis = useMemo(() => {
    let low = Infinity;
    let high = -Infinity;
    for (const value of x) {
      low = Math.min(low, value);
      high = Math.max(high, value);
    }
    if (words.length > 0) {
      return {kind: "linear" as const, domain: [-0.5, words.length - 0.5] as const, label: "",
              format: (value: number) => visible(words[value] ?? "").slice(0, 12)};
    }
    return {kind: props.log ? "log" as const : "linear" as const, domain: widened(low, high, props.log), label: ""};
  }, [x, words, props.log]);
  const yAxis = useMemo(() => ({kind: "linear" as const, domain: [range.low, range.high] as const, label: props.metric}), [range, props.metric]);
  const paint = useCallback<Painter>((context, frame, style) => {
    context.save();
    context.beginPath();
    context.rect(0, 0, frame.width, frame.height);
    context.clip();
    context.globalAlpha = points.length > MANY ? 0.4 : 0.8;
    points.forEach((row, i) => {
      context.fillStyle = rampColor(style, Math.max(0, groups[row] ?? 0) / 7);
      context.fillRect(Math.round(frame.x(x[i]!)) - DOT, Math.round(frame.y(y[i]!)) - DOT, 2 * DOT, 2 * DOT);
    });
    context.restore();
  }, [points, groups, x, y]);
  const find = (px: number, py: number, frame: Frame): number | null => {
    let best: number | null = null;
    let least = REACH * REACH;
    points.forEach((_, i) => {
      const distance = (frame.x(x[i]!) - px) ** 2 + (frame.y(y[i]!) - py) ** 2;
      if (distance <= least) [best, least] = [i, distance];
    });
    return best;
  };
  const describe = (i: number) => {
    const row = points[i];
    return row === undefined ? "" : `trial ${trials.number("number", row)}: ${visible(props.label)} ${cellText(trials, column, row)}, ` +
      `${visible(props.metric)} ${number(y[i] ?? null, 4)}`;
  };
  const order = useMemo(() => points.map((_, i) => i).sort((a, b) => x[a]! - x[b]!), [points, x]);
  const step = (mark: number | null, move: Move): number | null => {
    const place = mark === null ? -1 : order.indexOf(mark);
    const next = move === "home" ? 0 : move === "end" ? order.length - 1 : place + (move === "left" || move === "down" ? -1 : 1);
    return order[Math.max(0, Math.min(order.length - 1, next))] ?? null;
  };
  return (
    <Plot<number>
      label={`${visible(props.metric)} over ${visible(props.label)}`} height={HEIGHT} x={xAxis} y={yAxis} paint={paint} find={find} step={step}
      summary={`${visible(props.label)}: ${points.length} trials${range.outside > 0 ? `, ${range.outside} outliers beyond the picture` : ""}`}
      describe={describe} place={(i, frame) => [frame.x(x[i] ?? 0), frame.y(y[i] ?? 0)]}
      paintCursor={(context, frame, style, i) => {
        context.strokeStyle = style.text;
        context.lineWidth = 2;
        context.strokeRect(frame.x(x[i] ?? 0) - 5, frame.y(y[i] ?? 0) - 5, 10, 10);
      }}
      onOpen={(i) => points[i] !== undefined && props.onOpen(trials.number("number", points[i]!))}
      table={() => ({
        columns: ["trial", visible(props.label), visible(props.metric)],
        rows: order.map((i) => [trials.number("number", points[i]!), cellText(trials, column, points[i]!), number(y[i] ?? null, 6)]),
      })}
    />
  );
}

/** Points at the ends are whole. */
function widened(low: number, high: number, log: boolean): [number, number] {
  if (log && low > 0) return [low * Math.pow(low / high, 0.04), high * Math.pow(high / low, 0.04)];
  return [low - 0.04 * (high - low), high + 0.04 * (high - low)];
}

/** Points of rows that have both. Words are at whole numbers, in their order. */
function placesOf(trials: TrialsStore, rows: Uint32Array, column: string, valueColumn: string) {
  const words = trials.kindOf(column) === "words" ? [...trials.wordsOf(column)].sort((a, b) => (Number(a) - Number(b)) || (a < b ? -1 : 1)) : [];
  const placeOf = new Map(words.map((word, i) => [word, i]));
  const points: number[] = [];
  const xs: number[] = [];
  const ys: number[] = [];
  for (const row of rows) {
    const word = words.length > 0 ? trials.word(column, row) : null;
    const at = words.length > 0 ? (word === null ? NaN : placeOf.get(word) ?? NaN) : trials.number(column, row);
    const value = trials.number(valueColumn, row);
    if (!Number.isFinite(at) || !Number.isFinite(value)) continue;
    points.push(row);
    xs.push(at);
    ys.push(value);
  }
  return {points, x: Float64Array.from(xs), y: Float64Array.from(ys), words};
}
