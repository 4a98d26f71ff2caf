// Parallel coordinates: each trial is a line over its parameters and its value. A part of an axis is a filter of the table.

import {type PointerEvent, useEffect, useMemo, useRef, useState} from "react";

import {count, shortened, visible} from "../../../format";
import {paintParallel} from "../../../painters/parallel";
import {type Style, rampColor, readStyle} from "../../../plot/style";
import type {Condition} from "../../../table/conditions";
import {useTheme} from "../../../theme";
import {type ColumnAxis, withCondition} from "./axes";

const HEIGHT = 260;
const TOP = 28;
const BOTTOM = 10;
const LEAST_GAP = 96;
const MARGIN = 56;
const GROUPS = 8;
/** A shorter drag is a click. */
const CLICK_PX = 4;
/** Beyond so many lines they are thinner and more transparent. */
const MANY = 2000;

interface ParallelProps {
  axes: readonly ColumnAxis[];
  /** All rows, and those that meet the filters. */
  all: number;
  rows: Uint32Array;
  /** By row: from the worst to the best; -1: without a value. */
  groups: Int8Array;
  conditions: readonly Condition[];
  onConditions: (conditions: readonly Condition[]) => void;
}

export const PARALLEL_GROUPS = GROUPS;

export function ParallelPlot({axes, all, rows, groups, conditions, onConditions}: ParallelProps) {
  const [box, width] = useWidth();
  const theme = useTheme();
  const style = useMemo(readStyle, [theme]);
  const gap = axes.length < 2 ? 0 : Math.max(LEAST_GAP, (width - 2 * MARGIN) / (axes.length - 1));
  const full = Math.max(width, 2 * MARGIN + gap * (axes.length - 1));
  const xs = useMemo(() => axes.map((_, i) => Math.round(MARGIN + i * gap)), [axes, gap]);
  const canvas = usePainted(full, axes, all, rows, groups, xs, style);
  return (
    <div role="figure" aria-label="Parallel coordinates of the trials">
      <p className="muted">
        {count(rows.length)} of {count(all)} trials, the better the stronger the colour. Drag along an axis to filter by it, click on it
        to take its filter off; the table below has the same trials and filters.
      </p>
      <div className="parallel" ref={box} tabIndex={0} role="region" aria-label="Parallel coordinates, as a picture">
        <div className="parallel-inner" style={{width: full, height: TOP + HEIGHT + BOTTOM}}>
          <canvas ref={canvas} aria-hidden="true" style={{width: full, height: HEIGHT, top: TOP}} />
          <svg width={full} height={TOP + HEIGHT + BOTTOM} aria-hidden="true">
            {axes.map((axis, i) => <Axis key={axis.column} axis={axis} x={xs[i] ?? 0} conditions={conditions} />)}
          </svg>
          {axes.map((axis, i) => (
            <Brush key={axis.column} axis={axis} x={xs[i] ?? 0}
                   onCondition={(condition) => onConditions(withCondition(conditions, axis, condition))} />
          ))}
        </div>
      </div>
    </div>
  );
}

function useWidth(): [React.RefObject<HTMLDivElement>, number] {
  const ref = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(0);
  useEffect(() => {
    const element = ref.current;
    if (element === null) return undefined;
    const observer = new ResizeObserver(() => setWidth(element.clientWidth));
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  return [ref, width];
}

/** Filtered out lines lie below, the best on top. */
function usePainted(width: number, axes: readonly ColumnAxis[], all: number, rows: Uint32Array, groups: Int8Array,
                    xs: readonly number[], style: Style) {
  const ref = useRef<HTMLCanvasElement>(null);
  useEffect(() => {
    const frame = requestAnimationFrame(() => {
      const canvas = ref.current;
      const context = canvas?.getContext("2d");
      if (!canvas || !context || width <= 0) return;
      const ratio = window.devicePixelRatio || 1;
      canvas.width = Math.round(width * ratio);
      canvas.height = Math.round(HEIGHT * ratio);
      context.setTransform(ratio, 0, 0, ratio, 0, 0);
      const positions = axes.map((axis) => axis.positions);
      const scales = {x: xs, height: HEIGHT};
      if (rows.length < all) {
        const others = Uint32Array.from({length: all}, (_, row) => row);
        paintParallel(context, positions, others, () => 0, scales, {colors: [style.free], alpha: all > MANY ? 0.3 : 0.8, width: 1});
      }
      const colors = Array.from({length: GROUPS}, (_, i) => rampColor(style, i / (GROUPS - 1)));
      const alpha = rows.length > MANY ? 0.25 : 0.75;
      paintParallel(context, positions, rows, (row) => Math.max(0, groups[row] ?? 0), scales,
                    {colors, alpha, width: rows.length > MANY ? 0.75 : 1.25});
    });
    return () => cancelAnimationFrame(frame);
  }, [width, axes, all, rows, groups, xs, style]);
  return ref;
}

function Axis({axis, x, conditions}: {axis: ColumnAxis; x: number; conditions: readonly Condition[]}) {
  const y = (at: number) => TOP + (1 - at) * HEIGHT;
  return (
    <g className="parallel-axis">
      <line x1={x} x2={x} y1={TOP} y2={TOP + HEIGHT} />
      {conditions.map((condition, i) => {
        const part = axis.partOf(condition);
        return part === null ? null : (
          <rect key={i} x={x - 6} width={12} y={y(part[1])} height={Math.max(2, y(part[0]) - y(part[1]))} />
        );
      })}
      <text className="parallel-name" x={x} y={12} textAnchor="middle">{shortened(visible(axis.label), 14)}</text>
      {axis.ticks.map(({at, text}) => <text key={at} x={x + 9} y={y(at) + 4}>{text}</text>)}
    </g>
  );
}

/** Dragging over an axis. By the keyboard the same filters are made above the table. */
function Brush({axis, x, onCondition}: {axis: ColumnAxis; x: number; onCondition: (condition: Condition | null) => void}) {
  const [drag, setDrag] = useState<{from: number; to: number} | null>(null);
  const pixel = (event: PointerEvent<HTMLDivElement>) => {
    const bounds = event.currentTarget.getBoundingClientRect();
    return Math.max(0, Math.min(HEIGHT, event.clientY - bounds.top));
  };
  const down = (event: PointerEvent<HTMLDivElement>) => {
    if (event.button !== 0) return;
    event.currentTarget.setPointerCapture(event.pointerId);
    setDrag({from: pixel(event), to: pixel(event)});
  };
  const up = (event: PointerEvent<HTMLDivElement>) => {
    if (drag === null) return;
    const [top, bottom] = [Math.min(drag.from, pixel(event)), Math.max(drag.from, pixel(event))];
    onCondition(bottom - top < CLICK_PX ? null : axis.conditionOf(1 - bottom / HEIGHT, 1 - top / HEIGHT));
    setDrag(null);
  };
  return (
    <div className="parallel-brush" data-column={axis.column} style={{left: x - 14, top: TOP, height: HEIGHT}} onPointerDown={down}
         onPointerMove={(event) => drag !== null && setDrag({...drag, to: pixel(event)})} onPointerUp={up}
         onPointerCancel={() => setDrag(null)}>
      {drag !== null && <span style={{top: Math.min(drag.from, drag.to), height: Math.abs(drag.to - drag.from)}} />}
    </div>
  );
}
