// How the values of complete trials are spread: what share of them is at least as good as which value.

import {useMemo} from "react";

import type {Distribution, Study} from "../../../contract";
import {count, number, visible} from "../../../format";
import {fencedRange} from "../../../painters/curve_values";
import {Problem} from "../../../parts/problem";
import {type Frame, type Move, Plot} from "../../../plot/plot";
import type {AxisOf} from "../../../plot/scales";
import type {Style} from "../../../plot/style";
import {useAnswer} from "../../../store";
import {useRange} from "../../../url";
import {stepped} from "./dots";
import {type Spread, placeAt, spreadOf} from "./spread";

const HEIGHT = 220;
const NOT_TOLD = 404;
/** Of shares, with room for the names of axes. */
const ROOM = [-0.08, 1.05] as const;

export function SpreadPanel({study, objective, label}: {study: Study; objective: number; label: string}) {
  const {data, error} = useAnswer<Distribution>(`/api/view/studies/${study.id}/analysis?what=edf`,
                                                (event) => event.studies.includes(study.id));
  const maximize = study.directions[objective] === "maximize";
  const spread = useMemo(() => spreadOf(data?.objectives[objective], maximize), [data, objective, maximize]);
  // Of one value there is nothing to see, and a source that does not tell of it has nothing to show.
  if (data === null ? error?.status === NOT_TOLD : spread.value.length < 2) return null;
  return (
    <section className="panel" aria-label="Spread of the values">
      <header className="panel-head"><h2>Spread of the values</h2></header>
      {error !== null && data === null && <Problem error={error} what="The spread" />}
      {data === null && error === null && <p className="muted">Reading …</p>}
      {data !== null && <SpreadPlot spread={spread} maximize={maximize} label={label} complete={data.complete} />}
    </section>
  );
}

function SpreadPlot({spread, maximize, label, complete}: {spread: Spread; maximize: boolean; label: string; complete: number}) {
  const [view, setView] = useRange("spreadzoom");
  const fence = useMemo(() => fencedRange(Float64Array.from(spread.value), maximize), [spread, maximize]);
  const x = useMemo<AxisOf>(() => ({kind: "linear", domain: [fence.low, fence.high], label: visible(label)}), [fence, label]);
  const y = useMemo<AxisOf>(() => ({kind: "linear", domain: ROOM, label: "", format: (share) => `${number(100 * share)} %`}), []);
  const paint = (context: CanvasRenderingContext2D, frame: Frame, style: Style) => paintSpread(context, frame, style, spread);
  const told = (place: number) => `${number(100 * (spread.share[place] ?? 0))} %`;
  const middle = spread.value[spread.share.findIndex((share) => share >= 0.5)];
  const outside = fence.outside === 0 ? "" : ` ${count(fence.outside)} far worse values are not shown.`;
  return (
    <Plot<number>
      label={`Share of trials by ${visible(label)}`}
      summary={`${count(complete)} complete trials; half have ${number(middle, 4)} or better. The line is the share that is as good or better.${outside}`}
      height={HEIGHT} x={x} y={y} view={view} onView={setView} paint={paint}
      find={(px, _, frame) => placeAt(spread, frame.x.invert(px))}
      paintCursor={(context, frame, style, place) => mark(context, frame, style, spread, place)}
      step={(place, move: Move) => stepped(spread.value.length, place, move)}
      place={(place, frame) => [frame.x(spread.value[place] ?? 0), frame.y(spread.share[place] ?? 0)]}
      describe={(place) => `${told(place)} of the trials have\n${visible(label)} ${number(spread.value[place], 4)} or better`}
      table={() => ({columns: [visible(label), "Share that is as good or better"],
                     rows: spread.value.map((value, place) => [number(value, 5), told(place)])})}
    />
  );
}

function mark(context: CanvasRenderingContext2D, frame: Frame, style: Style, spread: Spread, place: number): void {
  context.fillStyle = style.accent;
  context.beginPath();
  context.arc(frame.x(spread.value[place] ?? 0), frame.y(spread.share[place] ?? 0), 4.5, 0, 2 * Math.PI);
  context.fill();
}

/** By steps: the share is that of the last value that a trial has. */
export function paintSpread(context: CanvasRenderingContext2D, frame: Frame, style: Style, {value, share}: Spread): void {
  context.strokeStyle = style.accent;
  context.lineWidth = 2;
  context.lineJoin = "round";
  context.beginPath();
  const up = (value[value.length - 1] ?? 0) >= (value[0] ?? 0);
  context.moveTo(up ? 0 : frame.width, frame.y(0));
  value.forEach((one, i) => {
    const x = frame.x(one);
    context.lineTo(x, frame.y(i === 0 ? 0 : share[i - 1] ?? 0));
    context.lineTo(x, frame.y(share[i] ?? 0));
  });
  context.lineTo(up ? frame.width : 0, frame.y(1));
  context.stroke();
}
