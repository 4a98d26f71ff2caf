// Each trial as a line over all parameters and the value. A part of an axis that is marked is a filter of the table.

import {type KeyboardEvent, type PointerEvent, useLayoutEffect, useMemo, useRef, useState} from "react";

import {count, number, shortened, visible} from "../../../format";
import {DataTable} from "../../../plot/data_table";
import {useWidth} from "../../../plot/plot";
import {type Style, markColor, readStyle} from "../../../plot/style";
import {say} from "../../../spoken";
import {type Condition, formatCondition} from "../../../table/conditions";
import type {TrialsStore} from "../../../table/trials_store";
import {useTheme} from "../../../theme";
import {type Dimension, brushOf, conditionBetween, numberAt, partOf, withBrush} from "./dimensions";

const HEIGHT = 300;
const TOP = 44;
const BOTTOM = 22;
const SIDE = 52;
const LEAST_APART = 92;
const SHADES = 16;
const AT_ONCE = 1500;
const MOST_FAINT = 5000;
/** A press that moves less takes the mark off. */
const CLICK_PX = 4;
const STEP = 0.05;
const LETTER_PX = 11;
/** Of more lines each is fainter, so that one sees where many are. */
const MANY = 200;
const LEAST_ALPHA = 0.08;

interface ParallelPlotProps {
  dimensions: readonly Dimension[];
  trials: TrialsStore;
  version: number;
  /** All that have a value, and those of them that meet all conditions. */
  all: Uint32Array;
  kept: Uint32Array;
  conditions: readonly Condition[];
  onConditions: (conditions: Condition[]) => void;
  maximize: boolean;
}

export function ParallelPlot(props: ParallelPlotProps) {
  const {dimensions, trials, kept, all} = props;
  const [asTable, setAsTable] = useState(false);
  const label = "Parameters and value of each trial";
  return (
    <div role="figure" aria-label={label} className="plot">
      <div className="plot-head">
        <p className="plot-summary">
          {count(kept.length)} of {count(all.length)} trials with a value; the stronger a line, the better. Draw along an axis to keep
          a part of it.
        </p>
        <span className="plot-tools">
          <button type="button" aria-pressed={asTable} onClick={() => setAsTable(!asTable)}>Table</button>
        </span>
      </div>
      {asTable
        ? <DataTable label={label} table={{columns: ["Trial", ...dimensions.map((one) => visible(one.label))],
            rows: Array.from(kept, (row) => [trials.number("number", row), ...dimensions.map((one) => cellText(trials, one, row))])}} />
        : <Picture {...props} />}
    </div>
  );
}

function cellText(trials: TrialsStore, of: Dimension, row: number): string {
  const cell = trials.cell(of.column, row);
  return cell === null ? "–" : typeof cell === "number" ? number(cell, 4) : visible(cell);
}

function Picture(props: ParallelPlotProps) {
  const {dimensions, conditions, onConditions} = props;
  const [box, outer] = useWidth();
  // Narrow screens scroll along the axes.
  const width = Math.max(outer, 2 * SIDE + LEAST_APART * (dimensions.length - 1));
  const xs = dimensions.map((_, place) => SIDE + (place * (width - 2 * SIDE)) / Math.max(1, dimensions.length - 1));
  const [drawn, setDrawn] = useState<{axis: number; from: number; to: number} | null>(null);
  const lines = useLines(props);
  const canvas = useLineCanvas(lines, xs, width, props.maximize);
  const set = (of: Dimension, brush: Condition | null) => {
    onConditions(withBrush(conditions, of, brush));
    say(brush === null ? `${visible(of.label)}: all` : visible(formatCondition(brush)));
  };
  return (
    <div className="parallel" ref={box}>
      <div className="parallel-inside" style={{width, height: HEIGHT + TOP + BOTTOM}}>
        <canvas ref={canvas} aria-hidden="true" style={{left: 0, top: TOP, width, height: HEIGHT}} />
        {dimensions.map((of, axis) => (
          <Axis key={of.column} of={of} x={xs[axis] ?? 0} room={(xs[1] ?? width) - (xs[0] ?? 0)}
                brush={drawn?.axis === axis ? [drawn.from, drawn.to] : brushOf(of, conditions)}
                onDraw={(from, to) => setDrawn({axis, from, to})}
                onDrawn={(brush) => { setDrawn(null); set(of, brush); }} />
        ))}
      </div>
    </div>
  );
}

interface AxisProps {
  of: Dimension;
  x: number;
  /** For its name. */
  room: number;
  brush: [number, number] | null;
  onDraw: (from: number, to: number) => void;
  onDrawn: (brush: Condition | null) => void;
}

function Axis({of, x, room, brush, onDraw, onDrawn}: AxisProps) {
  const start = useRef<number | null>(null);
  const partAt = (event: PointerEvent<HTMLElement>) => {
    const bounds = event.currentTarget.getBoundingClientRect();
    return Math.min(1, Math.max(0, 1 - (event.clientY - bounds.top) / bounds.height));
  };
  const down = (event: PointerEvent<HTMLElement>) => {
    if (event.button !== 0) return;
    event.currentTarget.setPointerCapture(event.pointerId);
    start.current = partAt(event);
  };
  const move = (event: PointerEvent<HTMLElement>) => {
    if (start.current !== null) onDraw(start.current, partAt(event));
  };
  const up = (event: PointerEvent<HTMLElement>) => {
    if (start.current === null) return;
    const to = partAt(event);
    const click = Math.abs(to - start.current) * HEIGHT < CLICK_PX;
    onDrawn(click ? null : conditionBetween(of, start.current, to));
    start.current = null;
  };
  const key = (event: KeyboardEvent<HTMLElement>) => {
    const next = brushByKey(event.key, brush, of);
    if (next === undefined) return;
    onDrawn(next === null ? null : conditionBetween(of, next[0], next[1]));
    event.preventDefault();
    event.stopPropagation();
  };
  const [low, high] = brush === null ? [0, 1] : [Math.min(...brush), Math.max(...brush)];
  const told = `${endText(of, low)} to ${endText(of, high)}`;
  return (
    <>
      <span className="parallel-name" style={{left: x, maxWidth: room - 8}} title={visible(of.label)}><bdi>{shortened(visible(of.label), Math.max(5, Math.floor(room / LETTER_PX)))}</bdi></span>
      <span className="parallel-end" style={{left: x, top: TOP - 18}}>{endText(of, 1)}</span>
      <span className="parallel-end" style={{left: x, top: TOP + HEIGHT + 2}}>{endText(of, 0)}</span>
      <div className="parallel-axis" style={{left: x, top: TOP, height: HEIGHT}} tabIndex={0} role="slider" aria-orientation="vertical"
           aria-label={`${visible(of.label)}: what is kept`} aria-valuemin={0} aria-valuemax={100} aria-valuenow={Math.round(high * 100)}
           aria-valuetext={brush === null ? `all, ${told}` : told} onPointerDown={down} onPointerMove={move} onPointerUp={up}
           onPointerCancel={() => { start.current = null; onDrawn(null); }} onKeyDown={key}>
        {of.words !== null && of.words.length > 2 && of.words.slice(1, -1).map((word, place) => (
          <span key={word} className="parallel-word" style={{bottom: `${(100 * (place + 1)) / (of.words!.length - 1)}%`}}>
            {shortened(visible(word), 10)}
          </span>
        ))}
        {brush !== null && (
          <span className="parallel-brush" style={{bottom: `calc(${100 * low}% - 3px)`, height: `calc(${100 * (high - low)}% + 6px)`}} />
        )}
      </div>
    </>
  );
}

function endText(of: Dimension, part: number): string {
  if (of.words !== null) return shortened(visible(of.words[numberAt(of, part)] ?? ""), 12);
  return number(numberAt(of, part), 3);
}

/** Arrows move what is kept, + and − make it longer and shorter, Enter begins with the upper half, Escape takes it off. */
function brushByKey(key: string, brush: [number, number] | null, of: Dimension): [number, number] | null | undefined {
  if (key === "Escape" || key === "Delete") return null;
  const step = of.words !== null && of.words.length > 1 ? 1 / (of.words.length - 1) : STEP;
  const [low, high] = brush ?? [0, 1];
  if (key === "Enter") return [0.5, 1];
  if (key === "ArrowUp") return brush === null ? [0.5, 1] : [Math.min(low + step, 1 - (high - low)), Math.min(1, high + step)];
  if (key === "ArrowDown") return brush === null ? [0, 0.5] : [Math.max(0, low - step), Math.max(high - step, high - low)];
  if (key === "+" || key === "=") return [Math.max(0, low - step), Math.min(1, high + step)];
  if (key === "-" && high - low > 2 * step) return [low + step, high - step];
  return undefined;
}

export interface Lines {
  /** Parts of the axes, a line after the other. */
  parts: Float64Array;
  axes: number;
  count: number;
  /** Of each line, 0 to 1, the best is 1; -1: it is left out by a condition. */
  shade: Float64Array;
}

function useLines({dimensions, trials, version, all, kept, maximize}: ParallelPlotProps): Lines {
  return useMemo(() => {
    const keeps = new Set(kept);
    const faint = Array.from(all).filter((row) => !keeps.has(row)).slice(0, MOST_FAINT);
    const value = dimensions[dimensions.length - 1]!;
    const values = Array.from(kept, (row) => partOf(value, trials, row));
    // By rank: one outlier must not make all others alike.
    const order = Array.from(kept, (_, place) => place).sort((a, b) => values[a]! - values[b]!);
    const rank = new Float64Array(kept.length);
    order.forEach((place, at) => (rank[place] = kept.length > 1 ? at / (kept.length - 1) : 1));
    const rows = [...faint, ...order.map((place) => kept[place]!)];
    const shade = new Float64Array(rows.length).fill(-1);
    order.forEach((place, at) => (shade[faint.length + at] = maximize ? rank[place]! : 1 - rank[place]!));
    const parts = new Float64Array(rows.length * dimensions.length);
    rows.forEach((row, line) => dimensions.forEach((of, axis) => {
      parts[line * dimensions.length + axis] = partOf(of, trials, row);
    }));
    return {parts, axes: dimensions.length, count: rows.length, shade};
  }, [dimensions, trials, version, all, kept, maximize]);
}

/** Paints so many lines a frame, that a page with many trials can be moved meanwhile; the best come last. */
function useLineCanvas(lines: Lines, xs: readonly number[], width: number, maximize: boolean) {
  const ref = useRef<HTMLCanvasElement>(null);
  const theme = useTheme();
  const places = xs.join();
  useLayoutEffect(() => {
    const canvas = ref.current;
    const context = canvas?.getContext("2d");
    if (!canvas || !context || width <= 0) return undefined;
    const ratio = window.devicePixelRatio || 1;
    const style = readStyle();
    const order = byShade(lines);
    let next = 0;
    let frame = 0;
    const paint = () => {
      if (next === 0) {
        canvas.width = Math.round(width * ratio);
        canvas.height = Math.round(HEIGHT * ratio);
        context.setTransform(ratio, 0, 0, ratio, 0, 0);
        context.clearRect(0, 0, width, HEIGHT);
        context.lineJoin = "round";
      }
      const end = Math.min(order.length, next + AT_ONCE);
      paintLines(context, lines, order.subarray(next, end), xs, style);
      next = end;
      if (next < order.length) frame = requestAnimationFrame(paint);
    };
    frame = requestAnimationFrame(paint);
    return () => cancelAnimationFrame(frame);
  }, [lines, places, width, theme, maximize]); // eslint-disable-line react-hooks/exhaustive-deps
  return ref;
}

export function byShade(lines: Lines): Uint32Array {
  const order = new Uint32Array(lines.count);
  for (let i = 0; i < order.length; ++i) order[i] = i;
  return order.sort((a, b) => lines.shade[a]! - lines.shade[b]!);
}

export function paintLines(context: CanvasRenderingContext2D, lines: Lines, order: Uint32Array, xs: readonly number[], style: Style): void {
  const shown = lines.shade.reduce((sum, shade) => sum + (shade >= 0 ? 1 : 0), 0);
  const alpha = 0.85 * Math.max(LEAST_ALPHA, Math.min(1, MANY / shown));
  let shade: number | null = null;
  for (const line of order) {
    const own = lines.shade[line]! < 0 ? -1 : Math.round(lines.shade[line]! * (SHADES - 1));
    if (own !== shade) {
      if (shade !== null) context.stroke();
      shade = own;
      context.strokeStyle = own < 0 ? style.line : markColor(style, own / (SHADES - 1));
      context.globalAlpha = own < 0 ? 0.35 : own === SHADES - 1 ? Math.max(alpha, 0.4) : alpha;
      context.lineWidth = own === SHADES - 1 && shown <= MANY ? 2 : 1;
      context.beginPath();
    }
    let begun = false;
    for (let axis = 0; axis < lines.axes; ++axis) {
      const part = lines.parts[line * lines.axes + axis]!;
      // A trial without the parameter has a gap there.
      if (Number.isNaN(part)) begun = false;
      else if (begun) context.lineTo(xs[axis]!, (1 - part) * HEIGHT);
      else context.moveTo(xs[axis]!, (1 - part) * HEIGHT);
      if (!Number.isNaN(part)) begun = true;
    }
  }
  if (shade !== null) context.stroke();
  context.globalAlpha = 1;
}
