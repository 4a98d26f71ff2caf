// Learning curves of several trials in one picture.

import {useCallback, useMemo} from "react";

import {number, time} from "../../format";
import {type Curve, type CurveStyle, nearestPoint, paintCurves} from "../../painters/curves";
import {type Frame, type Move, type Painter, Plot} from "../../plot/plot";
import {type Style, seriesColor} from "../../plot/style";
import type {CurveLink} from "./curve_links";
import {type ShownCurve, type XAxis, X_LABELS, lastFinite, xRange, yRange} from "./curve_set";

/** A point of a trial's curve. */
export interface CurvePoint {
  id: number;
  point: number;
}

export interface CurvesPlotProps {
  label: string;
  curves: readonly ShownCurve[];
  metric: string;
  maximize: boolean;
  axis: XAxis;
  xlog: boolean;
  ylog: boolean;
  /** All values, or those without outliers on the worse side. */
  whole: boolean;
  smooth: boolean;
  height: number;
  view: readonly [number, number] | null;
  onView: (view: [number, number] | null) => void;
  /** Trials that lie on top. */
  chosen: ReadonlySet<number>;
  best: number | null;
  hovered: number | null;
  onHover: (id: number | null) => void;
  onOpen: (curve: ShownCurve) => void;
  /** Where curves of clones leave others. */
  links?: readonly CurveLink[];
  tools?: React.ReactNode;
  /** Places in the palette by id, where few trials are to be told apart; else the ids themselves, as in the lanes. */
  colors?: ReadonlyMap<number, number>;
}

const REACH = 30;
const DASHES: Record<string, number[]> = {pruned: [5, 3], failed: [2, 3], fail: [2, 3]};
const BREAKS = [1, 4];
const MANY = 30;

export function curveStyle(curve: ShownCurve, style: Style, shown: number, strong: boolean,
                           place: number = curve.id): CurveStyle {
  const many = shown > MANY;
  return {color: seriesColor(style, place), width: strong ? 2.5 : many ? 1 : 1.5, alpha: strong || !many ? 1 : 0.6,
          dash: curve.infeasible ? BREAKS : DASHES[curve.state] ?? []};
}

export function CurvesPlot(props: CurvesPlotProps) {
  const {axis, curves, maximize, metric, xlog, ylog, whole} = props;
  const y = useMemo(() => yRange(curves, maximize, ylog, whole), [curves, maximize, ylog, whole]);
  const x = useMemo(() => xRange(curves, xlog), [curves, xlog]);
  // What lies on top is painted last.
  const order = useMemo(() => {
    const rank = (curve: ShownCurve) => (curve.id === props.best ? 2 : props.chosen.has(curve.id) ? 1 : 0);
    return [...curves].sort((a, b) => rank(a) - rank(b));
  }, [curves, props.chosen, props.best]);
  const lines = useMemo(() => order.map((curve) => ({x: curve.x, y: curve.smooth})), [order]);
  const byId = useMemo(() => new Map(curves.map((curve) => [curve.id, curve])), [curves]);
  const xAxis = useMemo(
    () => ({kind: axis === "time" ? "time" as const : xlog ? "log" as const : "linear" as const, domain: x,
            label: X_LABELS[axis], ...(axis === "step" ? {format: wholeStep} : {})}),
    [axis, xlog, x[0], x[1]], // eslint-disable-line react-hooks/exhaustive-deps
  );
  const yAxis = useMemo(
    () => ({kind: ylog ? "log" as const : "linear" as const, domain: [y.low, y.high] as const, label: metric}),
    [ylog, y.low, y.high, metric],
  );
  const {chosen, best, smooth, colors, links} = props;
  const paint = useCallback<Painter>((context, frame, style) => {
    if (links !== undefined) paintLinks(context, frame, style, links);
    paintShown(context, frame, style, order, lines, {chosen, best, smooth, colors});
  }, [order, lines, chosen, best, smooth, colors, links]);
  const paintCursor = (context: CanvasRenderingContext2D, frame: Frame, style: Style, mark: CurvePoint) => {
    const curve = byId.get(mark.id);
    if (curve !== undefined) paintPointed(context, frame, style, curve, mark.point, props.colors?.get(curve.id));
  };
  const find = (px: number, py: number, frame: Frame): CurvePoint | null => {
    const hit = nearestPoint(lines, scalesOf(frame), px, py, REACH);
    return hit === null ? null : {id: order[hit.curve]!.id, point: hit.point};
  };
  const hovered = props.hovered === null ? undefined : byId.get(props.hovered);
  return (
    <Plot<CurvePoint>
      label={props.label} summary={summaryOf(props, y.outside)} height={props.height} x={xAxis} y={yAxis}
      view={props.view} onView={props.onView} paint={paint} paintCursor={paintCursor} find={find}
      step={(mark, move) => stepped(curves, mark, move)} describe={(mark) => described(byId.get(mark.id), mark, props)}
      place={(mark, frame) => placeOf(byId.get(mark.id), mark, frame)}
      onOpen={(mark) => openOf(byId.get(mark.id), props.onOpen)} onMark={(mark) => props.onHover(mark?.id ?? null)}
      marked={hovered === undefined ? null : {id: hovered.id, point: lastFinite(hovered.smooth)}}
      tools={props.tools} table={() => tableOf(curves, metric, axis)}
    />
  );
}

type How = Pick<CurvesPlotProps, "chosen" | "best" | "smooth"> & {colors: CurvesPlotProps["colors"] | undefined};

/** `lines` are the smoothed ones of the curves. */
export function paintShown(context: CanvasRenderingContext2D, frame: Frame, style: Style, order: readonly ShownCurve[], lines: readonly Curve[],
                           {chosen, best, smooth, colors}: How): void {
  context.save();
  context.beginPath();
  context.rect(0, 0, frame.width, frame.height);
  context.clip();
  const strong = (curve: ShownCurve) => curve.id === best || chosen.has(curve.id);
  const styles = order.map((curve) => curveStyle(curve, style, order.length, strong(curve), colors?.get(curve.id)));
  const scales = scalesOf(frame);
  if (smooth) paintCurves(context, order, scales, styles.map((own) => ({...own, width: 1, alpha: own.alpha * 0.3})));
  paintCurves(context, lines, scales, styles);
  context.restore();
}

/** From where the parent was to where the clone began: thin, with a ring at the parent's. */
export function paintLinks(context: CanvasRenderingContext2D, frame: Frame, style: Style, links: readonly CurveLink[]): void {
  context.save();
  context.beginPath();
  context.rect(0, 0, frame.width, frame.height);
  context.clip();
  for (const {id, from, to} of links) {
    context.strokeStyle = seriesColor(style, id);
    context.lineWidth = 1;
    context.setLineDash([2, 2]);
    context.beginPath();
    context.moveTo(frame.x(from[0]), frame.y(from[1]));
    context.lineTo(frame.x(to[0]), frame.y(to[1]));
    context.stroke();
    context.setLineDash([]);
    context.beginPath();
    context.arc(frame.x(from[0]), frame.y(from[1]), 3, 0, 2 * Math.PI);
    context.stroke();
  }
  context.restore();
}

/** There is nothing between two steps. */
function wholeStep(step: number): string {
  return Number.isInteger(step) ? number(step, 6) : "";
}

function scalesOf(frame: Frame) {
  return {x: frame.x, y: frame.y, width: frame.width, height: frame.height};
}

function openOf(curve: ShownCurve | undefined, open: (curve: ShownCurve) => void): void {
  if (curve !== undefined) open(curve);
}

function paintPointed(context: CanvasRenderingContext2D, frame: Frame, style: Style, curve: ShownCurve, point: number,
                      place: number | undefined): void {
  context.save();
  context.beginPath();
  context.rect(0, 0, frame.width, frame.height);
  context.clip();
  const line = {x: curve.x, y: curve.smooth};
  const own = {...curveStyle(curve, style, 1, true, place), alpha: 1};
  // A rim in the colour of the ground lifts it off the others.
  paintCurves(context, [line, line], scalesOf(frame), [{...own, color: style.panel, width: 6, dash: []}, {...own, width: 3}]);
  const [x, y] = placeOf(curve, {id: curve.id, point}, frame);
  context.beginPath();
  context.arc(x, y, 5, 0, 2 * Math.PI);
  context.fillStyle = own.color;
  context.strokeStyle = style.panel;
  context.lineWidth = 2;
  context.fill();
  context.stroke();
  context.restore();
}

function placeOf(curve: ShownCurve | undefined, mark: CurvePoint, frame: Frame): [number, number] {
  if (curve === undefined || curve.x.length === 0) return [0, 0];
  const at = Math.max(0, Math.min(mark.point, curve.x.length - 1));
  return [frame.x(curve.x[at]!), Math.max(0, Math.min(frame.height, frame.y(curve.smooth[at]!)))];
}

function stepped(curves: readonly ShownCurve[], mark: CurvePoint | null, move: Move): CurvePoint | null {
  const place = mark === null ? -1 : curves.findIndex((curve) => curve.id === mark.id);
  if (mark === null || place < 0) {
    const first = curves[0];
    return first === undefined ? null : {id: first.id, point: lastFinite(first.smooth)};
  }
  const curve = curves[place]!;
  const last = curve.x.length - 1;
  switch (move) {
    case "left": return {id: mark.id, point: Math.max(0, mark.point - 1)};
    case "right": return {id: mark.id, point: Math.min(last, mark.point + 1)};
    case "home": return {id: mark.id, point: 0};
    case "end": return {id: mark.id, point: last};
    case "up":
    case "down": {
      const next = curves[(place + (move === "up" ? curves.length - 1 : 1)) % curves.length]!;
      return {id: next.id, point: Math.min(mark.point, next.x.length - 1)};
    }
  }
}

function described(curve: ShownCurve | undefined, mark: CurvePoint, props: CurvesPlotProps): string {
  if (curve === undefined) return "";
  const x = curve.x[mark.point] ?? NaN;
  const where = props.axis === "time" ? time(x) : `${X_LABELS[props.axis]} ${number(x, 4)}`;
  const raw = number(curve.y[mark.point] ?? null, 4);
  const smooth = props.smooth ? `, smoothed ${number(curve.smooth[mark.point] ?? null, 4)}` : "";
  return `trial ${curve.trial}, ${stateOf(curve)}: ${props.metric} ${raw}${smooth} at ${where}`;
}

function stateOf(curve: ShownCurve): string {
  return curve.infeasible ? `${curve.state}, breaks a constraint` : curve.state;
}

function summaryOf(props: CurvesPlotProps, outside: number): string {
  const {curves} = props;
  if (curves.length === 0) return "No trial has reported a value yet.";
  const points = curves.reduce((sum, curve) => sum + curve.points, 0);
  const best = curves.find((curve) => curve.id === props.best);
  const bestText = best === undefined ? "" : `, best trial ${best.trial}`;
  const out = outside > 0 ? `, ${outside} outliers beyond the picture` : "";
  return `${curves.length} ${curves.length === 1 ? "curve" : "curves"} of ${number(points, 6)} values${bestText}${out}`;
}

function tableOf(curves: readonly ShownCurve[], metric: string, axis: XAxis) {
  return {
    columns: ["trial", "state", "values", `last ${X_LABELS[axis]}`, `last ${metric}`, "least", "greatest"],
    rows: curves.map((curve) => {
      const finite = curve.y.filter((value) => Number.isFinite(value));
      const last = curve.x[curve.x.length - 1] ?? NaN;
      return [curve.trial, stateOf(curve), curve.points, axis === "time" ? time(last) : number(last, 4),
              number(finite[finite.length - 1] ?? null, 4), number(finite.length > 0 ? least(finite) : null, 4),
              number(finite.length > 0 ? -least(finite.map((value) => -value)) : null, 4)];
    }),
  };
}

function least(values: Float64Array): number {
  return values.reduce((low, value) => Math.min(low, value), Infinity);
}
