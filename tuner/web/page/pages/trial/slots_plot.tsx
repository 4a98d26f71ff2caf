// The slots that a trial held over time, with what was decided.

import {useCallback, useMemo} from "react";

import type {Decision, Trial} from "../../contract";
import {time, visible} from "../../format";
import {type Frame, type Move, type Painter, Plot} from "../../plot/plot";
import {type Style, seriesColor} from "../../plot/style";
import {store} from "../../store";
import {useRange} from "../../url";
import {slotSteps, slotsAt} from "./slots_steps";

const HEIGHT = 120;
const REACH = 12;
/** What is shorter is shown as a part of so much time. */
const LEAST_S = 10;

/** A step or a decision: a time. */
type Mark = {at: number};

export function SlotsOverTime({trial, decisions}: {trial: Trial; decisions: readonly Decision[]}) {
  const [view, setView] = useRange("slotzoom");
  const now = Math.floor(store.now());
  const steps = useMemo(() => slotSteps(trial.spans, now), [trial.spans, now]);
  const most = Math.max(1, ...steps.slots);
  const last = trial.ended_at ?? now;
  const first = Math.min(steps.at[0] ?? last, last - LEAST_S);
  const x = useMemo(() => ({kind: "time" as const, domain: [first, last] as const, label: ""}), [first, last]);
  const y = useMemo(() => ({kind: "linear" as const, domain: [0, most + 0.5] as const, label: "",
                            format: (value: number) => (Number.isInteger(value) ? String(value) : "")}), [most]);
  const paint = useCallback<Painter>((context, frame, style) => paintSlots(context, frame, style, {trial: trial.id, steps, last, decisions}),
                                     [steps, last, decisions, trial.id]);
  if (trial.spans.length === 0) return null;
  const times = [...new Set([...steps.at, ...decisions.map(({at}) => at)])].sort((a, b) => a - b);
  const find = (px: number, _: number, frame: Frame): Mark | null => {
    const near = times.map((at) => ({at, far: Math.abs(frame.x(at) - px)})).sort((a, b) => a.far - b.far)[0];
    return near !== undefined && near.far <= REACH ? {at: near.at} : {at: frame.x.invert(px)};
  };
  const step = (mark: Mark | null, move: Move): Mark | null => {
    const place = mark === null ? times.length : times.findIndex((at) => at >= mark.at);
    const next = move === "home" ? 0 : move === "end" ? times.length - 1 : move === "left" || move === "up" ? place - 1 : place + 1;
    const at = times[Math.max(0, Math.min(times.length - 1, next))];
    return at === undefined ? null : {at};
  };
  const describe = ({at}: Mark) => {
    const made = decisions.filter((decision) => decision.at === at).map((decision) => `${decision.kind}: ${visible(decision.reason)}`);
    const held = slotsAt(trial.spans, at, now);
    return [`${time(at, now)}, ${held === "" ? "no slot" : visible(held)}`, ...made].join("\n");
  };
  return (
    <section className="panel" aria-label="Slots over time">
      <h2>Slots</h2>
      <Plot<Mark>
        label={`slots of trial ${trial.number} over time`} height={HEIGHT} x={x} y={y} view={view} onView={setView}
        paint={paint} find={find} summary={summaryOf(trial.slots, most, decisions.length)}
        step={step} describe={describe} place={(mark, frame) => [frame.x(mark.at), HEIGHT / 2]}
        paintCursor={(context, frame, style, mark) => paintTime(context, frame, style, mark.at)}
        table={() => ({columns: ["from", "slots", "where"],
                       rows: steps.at.map((at, i) => [time(at, now), steps.slots[i] ?? 0, visible(slotsAt(trial.spans, at, now))])})}
      />
    </section>
  );
}

function summaryOf(slots: number, most: number, decisions: number): string {
  const now = slots === 0 ? "No slot" : slots === 1 ? "One slot" : `${slots} slots`;
  return `${now} now, ${most} at most, ${decisions} ${decisions === 1 ? "decision" : "decisions"}`;
}

export interface SlotsShown {
  /** Its id. */
  trial: number;
  steps: {at: readonly number[]; slots: readonly number[]};
  /** Until when it has the last of them. */
  last: number;
  decisions: readonly Pick<Decision, "at" | "from_slots" | "to_slots">[];
}

export function paintSlots(context: CanvasRenderingContext2D, frame: Frame, style: Style, {trial, steps, last, decisions}: SlotsShown): void {
  context.fillStyle = seriesColor(style, trial);
  paintSteps(context, frame, steps.at, steps.slots, last);
  context.fillStyle = style.text;
  for (const decision of decisions) paintDecision(context, frame, decision);
}

function paintSteps(context: CanvasRenderingContext2D, frame: Frame, at: readonly number[], slots: readonly number[],
                    last: number): void {
  at.forEach((from, i) => {
    const left = Math.max(0, Math.round(frame.x(from)));
    const right = Math.min(frame.width, Math.round(frame.x(at[i + 1] ?? last)));
    const top = Math.round(frame.y(slots[i] ?? 0));
    if (right >= left) context.fillRect(left, top, Math.max(1, right - left), Math.round(frame.height) - top);
  });
}

/** A triangle up or down where it grew or shrank, a line otherwise. */
function paintDecision(context: CanvasRenderingContext2D, frame: Frame, decision: SlotsShown["decisions"][number]): void {
  const x = Math.round(frame.x(decision.at));
  if (x < 0 || x > frame.width) return;
  const up = decision.to_slots > decision.from_slots;
  if (decision.to_slots === decision.from_slots) {
    context.fillRect(x - 1, 0, 2, 10);
    return;
  }
  context.beginPath();
  context.moveTo(x - 5, up ? 9 : 1);
  context.lineTo(x + 5, up ? 9 : 1);
  context.lineTo(x, up ? 1 : 9);
  context.closePath();
  context.fill();
}

function paintTime(context: CanvasRenderingContext2D, frame: Frame, style: Style, at: number): void {
  context.fillStyle = style.text;
  context.fillRect(Math.round(frame.x(at)), 0, 1, frame.height);
}
