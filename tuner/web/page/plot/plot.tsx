// A picture with axes: marks on one canvas, the cursor on another, so that moving a mouse never paints marks; axes as
// text; gestures, keys and a table of the same. What is drawn is up to the painters that it is given.

import {axisBottom, axisLeft} from "d3-axis";
import {event as d3Event, select} from "d3-selection";
import {zoom, zoomIdentity} from "d3-zoom";
import {type KeyboardEvent, type PointerEvent, type ReactNode, useEffect, useId, useLayoutEffect, useMemo, useRef,
        useState} from "react";

import {say} from "../spoken";
import {useTheme} from "../theme";
import {DataTable, type TableOf} from "./data_table";
import {type AxisOf, type Range, type Scale, drawable, scaleOf} from "./scales";
import {type Style, readStyle} from "./style";

export interface Frame {
  x: Scale;
  y: Scale;
  width: number;
  height: number;
}

export type Painter = (context: CanvasRenderingContext2D, frame: Frame, style: Style) => void;
export type Move = "left" | "right" | "up" | "down" | "home" | "end";

export interface PlotProps<M> {
  /** What the picture shows, in a few words. */
  label: string;
  /** And what is to be seen in it, as a sentence. */
  summary: string;
  height: number;
  x: AxisOf;
  /** Without one the painter has y from 0 to the height in pixels. */
  y?: AxisOf;
  left?: number;
  /** The part of x that is seen; null: all. */
  view?: Range | null;
  /** After a gesture. Without it nothing can be zoomed. */
  onView?: (view: [number, number] | null) => void;
  /** The marks are painted again when this is another function. */
  paint: Painter;
  paintCursor?: (context: CanvasRenderingContext2D, frame: Frame, style: Style, mark: M) => void;
  /** The mark at a pixel. */
  find?: (x: number, y: number, frame: Frame) => M | null;
  /** The next mark by keyboard; from null: the first. */
  step?: (mark: M | null, move: Move, frame: Frame) => M | null;
  describe?: (mark: M) => string;
  /** Where the text about a mark that keys have reached stands. */
  place?: (mark: M, frame: Frame) => [number, number];
  onOpen?: (mark: M) => void;
  onMark?: (mark: M | null) => void;
  /** The mark that something else points at, such as a row of a table. */
  marked?: M | null;
  table: () => TableOf;
  /** Beside the picture's own buttons. */
  tools?: ReactNode;
  /** Over the picture's left margin: names of lanes. */
  lead?: ReactNode;
}

const MARGIN = {top: 8, right: 14, bottom: 24};
const ZOOM_STEP = 1.6;
const MOST_ZOOM = 100_000;
const PIXELS_A_TICK = 90;
const MOVES: Record<string, Move> =
  {ArrowLeft: "left", ArrowRight: "right", ArrowUp: "up", ArrowDown: "down", Home: "home", End: "end"};

/** The width of an element, as it changes. */
export function useWidth(): [React.RefObject<HTMLDivElement>, number] {
  const ref = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(0);
  useLayoutEffect(() => {
    const element = ref.current;
    if (!element) return undefined;
    const observer = new ResizeObserver(() => setWidth(Math.floor(element.clientWidth)));
    observer.observe(element);
    setWidth(Math.floor(element.clientWidth));
    return () => observer.disconnect();
  }, []);
  return [ref, width];
}

/** Paints in the next frame after one of `causes` has changed, once for all changes until then. */
function useCanvas(width: number, height: number, causes: readonly unknown[], paint: (context: CanvasRenderingContext2D) => void) {
  const ref = useRef<HTMLCanvasElement>(null);
  const newest = useRef(paint);
  newest.current = paint;
  useLayoutEffect(() => {
    const frame = requestAnimationFrame(() => {
      const canvas = ref.current;
      const context = canvas?.getContext("2d");
      if (!canvas || !context || width <= 0) return;
      const ratio = window.devicePixelRatio || 1;
      if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
        canvas.width = Math.round(width * ratio);
        canvas.height = Math.round(height * ratio);
      }
      context.setTransform(ratio, 0, 0, ratio, 0, 0);
      context.clearRect(0, 0, width, height);
      newest.current(context);
    });
    return () => cancelAnimationFrame(frame);
  }, [width, height, ...causes]); // eslint-disable-line react-hooks/exhaustive-deps
  return ref;
}

export function Plot<M>(props: PlotProps<M>) {
  const [box, outer] = useWidth();
  const [asTable, setAsTable] = useState(false);
  const [gesture, setGesture] = useState<Range | null>(null);
  const [mark, setMark] = useState<{mark: M; x: number; y: number} | null>(null);
  const overlay = useRef<HTMLDivElement>(null);
  const theme = useTheme();
  const style = useMemo(readStyle, [theme]);
  const summaryId = useId();
  const left = props.left ?? (props.y ? 52 : 8);
  const width = Math.max(0, outer - left - MARGIN.right);
  const height = props.height;
  const all = drawable(props.x);
  const seen = gesture ?? props.view ?? all;
  const frame = useMemo<Frame>(() => {
    const y: AxisOf = props.y ?? {kind: "linear", domain: [height, 0], label: ""};
    const domain = props.y ? drawable(props.y) : ([height, 0] as const);
    return {x: scaleOf(props.x, seen, [0, width]), y: scaleOf(y, domain, [height, 0]), width, height};
  }, [props.x, props.y, seen[0], seen[1], width, height]);

  const zoomTo = useZoom(overlay, props, all, props.view ?? null, width, height, asTable, setGesture);

  const marks = useCanvas(width, height, [frame, style, props.paint, asTable], (context) => {
    paintGrid(context, frame, style, props.y !== undefined);
    props.paint(context, frame, style);
  });
  const shown = mark ? mark.mark : props.marked ?? null;
  const cursor = useCanvas(width, height, [frame, style, props.paint, asTable, mark, props.marked], (context) => {
    if (shown !== null) props.paintCursor?.(context, frame, style, shown);
  });

  const point = (next: M | null, at: [number, number] | null, spoken: boolean) => {
    const place = next === null ? null : at ?? props.place?.(next, frame) ?? [0, 0];
    setMark(next === null || place === null ? null : {mark: next, x: place[0], y: place[1]});
    props.onMark?.(next);
    if (spoken && next !== null && props.describe) say(props.describe(next));
  };
  const hover = (event: PointerEvent<HTMLDivElement>) => {
    const bounds = event.currentTarget.getBoundingClientRect();
    const at: [number, number] = [event.clientX - bounds.left, event.clientY - bounds.top];
    point(props.find?.(at[0], at[1], frame) ?? null, at, false);
  };
  const open = (event: React.MouseEvent<HTMLDivElement>) => {
    const bounds = event.currentTarget.getBoundingClientRect();
    const hit = props.find?.(event.clientX - bounds.left, event.clientY - bounds.top, frame) ?? null;
    if (hit !== null) props.onOpen?.(hit);
  };
  const key = (event: KeyboardEvent<HTMLDivElement>) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const move = MOVES[event.key];
    if (move && props.step) point(props.step(mark?.mark ?? null, move, frame), null, true);
    else if (event.key === "Enter" && mark) props.onOpen?.(mark.mark);
    else if (event.key === "Escape" && mark) point(null, null, false);
    else if (event.key === "t") setAsTable(true);
    else if (event.key === "+" || event.key === "=") zoomTo(ZOOM_STEP, mark?.x ?? null);
    else if (event.key === "-") zoomTo(1 / ZOOM_STEP, mark?.x ?? null);
    else if (event.key === "0") props.onView?.(null);
    else return;
    event.preventDefault();
    event.stopPropagation();
  };

  return (
    <div role="figure" aria-label={props.label} className="plot">
      <div className="plot-head">
        <p id={summaryId} className="plot-summary">{props.summary}</p>
        <span className="plot-tools">
          {props.tools}
          {props.onView && !asTable && (
            <>
              <button type="button" aria-label="Zoom in" onClick={() => zoomTo(ZOOM_STEP, null)}>+</button>
              <button type="button" aria-label="Zoom out" onClick={() => zoomTo(1 / ZOOM_STEP, null)}>−</button>
              {props.view && <button type="button" onClick={() => props.onView?.(null)}>All</button>}
            </>
          )}
          <button type="button" aria-pressed={asTable} onClick={() => setAsTable(!asTable)}>Table</button>
        </span>
      </div>
      <div ref={box} className="plot-box">
        {asTable ? (
          <DataTable label={props.label} table={props.table()} />
        ) : (
          <div className="plot-area" style={{height: height + MARGIN.top + MARGIN.bottom}}>
            {props.lead && <div className="plot-lead" style={{top: MARGIN.top, width: left, height}}>{props.lead}</div>}
            <Axes frame={frame} left={left} outer={outer} withY={props.y !== undefined} x={props.x} y={props.y} />
            <div className="plot-canvases" style={{left, top: MARGIN.top, width, height}}>
              <canvas ref={marks} aria-hidden="true" style={{width, height}} />
              <canvas ref={cursor} aria-hidden="true" style={{width, height}} />
              <div ref={overlay} className="plot-overlay" tabIndex={0} role="application" aria-label={props.label}
                   aria-roledescription="picture" aria-describedby={summaryId} onPointerMove={hover}
                   onPointerLeave={() => point(null, null, false)} onClick={open} onKeyDown={key} />
              {mark && props.describe && <Tip text={props.describe(mark.mark)} x={mark.x} y={mark.y} width={width} />}
            </div>
          </div>
        )}
      </div>
    </div>
  );
}

function Tip({text, x, y, width}: {text: string; x: number; y: number; width: number}) {
  const toLeft = x > width / 2;
  return (
    <div className="plot-tip" aria-hidden="true"
         style={toLeft ? {right: width - x + 12, top: y + 12} : {left: x + 12, top: y + 12}}>
      {text}
    </div>
  );
}

/** D3's zoom on the overlay, kept in step with the view. Returns a zoom by a factor around a pixel. */
function useZoom<M>(overlay: React.RefObject<HTMLDivElement>, props: PlotProps<M>, all: Range, view: Range | null,
                    width: number, height: number, asTable: boolean, setGesture: (view: Range | null) => void) {
  const newest = useRef({props, all, x: props.x});
  newest.current = {props, all, x: props.x};
  const setting = useRef(false);
  const behavior = useMemo(() => zoom(), []);
  const wanted = props.onView !== undefined && !asTable && width > 0;

  useLayoutEffect(() => {
    const element = overlay.current;
    if (!element || !wanted) return undefined;
    const seenNow = (): Range | null => {
      const {k, x} = d3Event.transform;
      if (k <= 1.0001) return null;
      const scale = scaleOf(newest.current.x, newest.current.all, [0, width]);
      return [scale.invert((0 - x) / k), scale.invert((width - x) / k)];
    };
    behavior
      .extent([[0, 0], [width, height]])
      .translateExtent([[0, 0], [width, height]])
      .scaleExtent([1, MOST_ZOOM])
      // The wheel alone scrolls the page. A pinch on a touchpad comes as a wheel with the control key.
      .filter(() => {
        const event = d3Event as unknown as MouseEvent;
        return event.type === "wheel" ? event.ctrlKey || event.metaKey || event.shiftKey : !event.button;
      })
      .on("zoom", () => {
        if (!setting.current) setGesture(seenNow() ?? newest.current.all);
      })
      .on("end", () => {
        if (setting.current) return;
        const seen = seenNow();
        newest.current.props.onView?.(seen && [seen[0], seen[1]]);
        setGesture(null);
      });
    const selection = select(element);
    selection.call(behavior as never).on("dblclick.zoom", null);
    element.style.touchAction = "pan-y";
    return () => {
      selection.on(".zoom", null);
    };
  }, [behavior, wanted, width, height, overlay, setGesture]);

  useLayoutEffect(() => {
    const element = overlay.current;
    if (!element || !wanted) return;
    const scale = scaleOf(newest.current.x, all, [0, width]);
    const [from, to] = view ? [scale(view[0]), scale(view[1])] : [0, width];
    const k = width / Math.max(1e-9, to - from);
    setting.current = true;
    behavior.transform(select(element), zoomIdentity.translate(-from * k, 0).scale(k));
    setting.current = false;
  }, [behavior, wanted, width, all[0], all[1], view?.[0], view?.[1], overlay]);

  return (factor: number, around: number | null) => {
    const scale = scaleOf(props.x, all, [0, width]);
    const [from, to] = view ? [scale(view[0]), scale(view[1])] : [0, width];
    const middle = from + ((around ?? width / 2) / width) * (to - from);
    const span = Math.min(width, Math.max(width / MOST_ZOOM, (to - from) / factor));
    const start = Math.min(width - span, Math.max(0, middle - span * ((around ?? width / 2) / width)));
    props.onView?.(span >= width * 0.9999 ? null : [scale.invert(start), scale.invert(start + span)]);
  };
}

function paintGrid(context: CanvasRenderingContext2D, frame: Frame, style: Style, withY: boolean): void {
  context.strokeStyle = style.line;
  context.lineWidth = 1;
  context.beginPath();
  for (const tick of frame.x.ticks(Math.max(2, frame.width / PIXELS_A_TICK))) {
    const x = Math.round(frame.x(tick)) + 0.5;
    context.moveTo(x, 0);
    context.lineTo(x, frame.height);
  }
  if (withY) {
    for (const tick of frame.y.ticks(Math.max(2, frame.height / 45))) {
      const y = Math.round(frame.y(tick)) + 0.5;
      context.moveTo(0, y);
      context.lineTo(frame.width, y);
    }
  }
  context.stroke();
}

function Axes({frame, left, outer, withY, x, y}: {frame: Frame; left: number; outer: number; withY: boolean; x: AxisOf;
                                                  y: AxisOf | undefined}) {
  const bottom = useRef<SVGGElement>(null);
  const side = useRef<SVGGElement>(null);
  useEffect(() => {
    if (frame.width <= 0) return;
    if (bottom.current) {
      const ticks = frame.x.ticks(Math.max(2, frame.width / PIXELS_A_TICK));
      select(bottom.current).call(axisBottom(d3ScaleOf(frame.x, [0, frame.width])).tickValues(ticks).tickSizeOuter(0)
        .tickFormat(((value: number) => frame.x.format(value)) as never) as never);
    }
    if (side.current) {
      const ticks = frame.y.ticks(Math.max(2, frame.height / 45));
      select(side.current).call(axisLeft(d3ScaleOf(frame.y, [frame.height, 0])).tickValues(ticks).tickSizeOuter(0)
        .tickFormat(((value: number) => frame.y.format(value)) as never) as never);
    }
  });
  return (
    <svg className="plot-axes" width={outer} height={frame.height + MARGIN.top + MARGIN.bottom} aria-hidden="true">
      <g ref={bottom} transform={`translate(${left},${MARGIN.top + frame.height})`} />
      {withY && <g ref={side} transform={`translate(${left},${MARGIN.top})`} />}
      {x.label && (
        <text className="plot-axis-label" x={outer - MARGIN.right} y={MARGIN.top + frame.height - 6} textAnchor="end">
          {x.label}
        </text>
      )}
      {y?.label && <text className="plot-axis-label" x={left + 6} y={MARGIN.top + 10}>{y.label}</text>}
    </svg>
  );
}

/** What d3-axis asks of a scale. */
function d3ScaleOf(scale: Scale, range: Range) {
  const adapted = (value: number) => scale(value);
  return Object.assign(adapted, {range: () => range, domain: () => scale.domain, copy: () => adapted});
}
