// Who held which slot when: the pool's lanes, or those of one study.

import {useCallback, useMemo, useRef} from "react";

import type {LaneNode, Lanes as LanesAnswer} from "../contract";
import {clock, count, duration, number, shortened, time, visible} from "../format";
import {Choices} from "../parts/choices";
import {useNow} from "../parts/now";
import {Problem} from "../parts/problem";
import {record} from "../record/record";
import {useAnswer, useFigures} from "../store";
import {setQuery, useQuery, useRange} from "../url";
import {type GroupBy, byStudy} from "./lane_groups";
import {nodesInUse} from "./lane_nodes";
import {type ColorBy, type Promises, paintLaneCursor, paintLanes} from "./lane_painter";
import {type LaneHit, type Layout, endOf, hit, layOut, rowOf, spanAt} from "./lane_rows";
import {type Frame, type Move, type Painter, Plot} from "./plot";
import type {AxisOf} from "./scales";

/** Above so many slots nodes are folded until they are opened. */
const MOST_ROWS = 48;
/** Of two pictures that are to be seen together. */
const MOST_ROWS_BESIDE = 16;
const WIDTH = 1600;
const ROUND_S = 10;
const LEAD_PX = 104;
/** Characters that have room there. */
const MOST_NAME = 9;
const MOST_ROWS_IN_TABLE = 2000;
/** A picture that ends so long ago is not of now. */
const PAST_S = 2;
const NO_PROMISES: Promises = new Map();

export type Window = "600" | "3600" | "all";
export const WINDOWS: readonly (readonly [Window, string])[] = [["600", "10 min"], ["3600", "1 h"], ["all", "all"]];
const COLORS: readonly (readonly [ColorBy, string])[] = [["trial", "trial"], ["study", "study"], ["promise", "promise"]];

const GROUPS: readonly (readonly [GroupBy, string])[] = [["node", "node"], ["study", "study"]];

export interface LanesProps {
  /** Of one study alone. */
  study?: number;
  /** Asked why, by a click or Enter. */
  onWhy?: (trial_id: number, at: number) => void;
}

/** What is asked for: the window up to now, or the part that is zoomed to. */
function addressOfLanes(window: Window, view: readonly [number, number] | null, begun: number, now: number,
                        study: number | undefined): string {
  const query = new URLSearchParams({width: String(WIDTH)});
  if (view) {
    query.set("from", view[0].toFixed(3));
    query.set("to", view[1].toFixed(3));
  } else if (window !== "all") {
    query.set("from", String(Math.floor(Math.max(begun, now - Number(window)) / ROUND_S) * ROUND_S));
  }
  if (study !== undefined) query.set("study", String(study));
  return `/api/view/lanes?${query.toString()}`;
}

export function Lanes({study, onWhy}: LanesProps) {
  const now = useNow();
  const [window, setWindow] = useQuery("w", record === null ? "3600" : "all") as [Window, (value: string) => void];
  const [color, setColor] = useQuery("color", "trial") as [ColorBy, (value: string) => void];
  const [groupText, setGroup] = useQuery("group", "node");
  const group: GroupBy = groupText === "study" && study === undefined ? "study" : "node";
  const [view, setView] = useRange("t");
  // When the first bar of this window began: a young pool's picture is asked for as finely as it is drawn.
  const begun = useRef<{window: Window; at: number} | null>(null);
  const since = begun.current?.window === window ? begun.current.at : 0;
  const {data, error} = useAnswer<LanesAnswer>(addressOfLanes(window, view, since, now, study),
    (event) => event.pool || event.decisions || event.studies.length > 0);
  // The picture stays while the next one is on its way.
  const last = useRef<LanesAnswer | null>(null);
  if (data) last.current = data;
  if (data && !view) begun.current = {window, at: earliest(data)};
  const all = data ?? last.current;
  const lanes = useMemo(() => (all && study !== undefined ? nodesInUse(all) : all), [all, study]);
  return (
    <>
      <div className="lane-tools">
        <Choices label="time" of={WINDOWS} chosen={window}
                 onChoose={(chosen) => { setView(null); setWindow(chosen); }} />
        <Choices label="colour by" of={COLORS} chosen={color} onChoose={setColor} />
        {study === undefined && <Choices label="group by" of={GROUPS} chosen={group} onChoose={setGroup} />}
      </div>
      {error && !lanes && <Problem error={error} what="Slots" />}
      {lanes && <LanesPlot lanes={lanes} now={now} window={window} color={color} group={group} view={view} setView={setView} onWhy={onWhy} />}
      {lanes && <Legend color={color} />}
    </>
  );
}

/** What the shapes and, where they are an order, the colours stand for. */
function Legend({color}: {color: ColorBy}) {
  return (
    <p className="lane-legend muted small">
      <span>▲ grew</span> <span>▼ shrank</span> <span>✕ pruned</span> <span><span className="bad">◆</span> failed</span>{" "}
      <span>■ paused, moved or started again</span>
      {color === "promise" && <span>promise 0 <span className="ramp" aria-hidden="true" /> 1, of trials that run now</span>}
    </p>
  );
}

function usePromises(): Promises {
  const figures = useFigures();
  return useMemo(() => {
    const promises = new Map<number, number>();
    figures?.trial_id.forEach((trial, at) => {
      const promise = figures.promise[at];
      if (typeof promise === "number") promises.set(trial, promise);
    });
    return promises;
  }, [figures]);
}

/** Which nodes are folded: the address names those that differ from what is usual. */
function useFolds(lanes: LanesAnswer, key = "fold", most = MOST_ROWS): [(node: LaneNode) => boolean, (node: LaneNode) => void] {
  const [text] = useQuery(key, "");
  const turned = useMemo(() => new Set(text.split(",").filter(Boolean).map(decode)), [text]);
  const usual = lanes.nodes.reduce((sum, node) => sum + node.slots, 0) > most;
  const folded = (node: LaneNode) => turned.has(node.name) !== usual;
  const turn = (node: LaneNode) => {
    const next = new Set(turned);
    if (!next.delete(node.name)) next.add(node.name);
    setQuery({[key]: next.size ? [...next].map(encodeURIComponent).join(",") : null});
  };
  return [folded, turn];
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** Lanes of a simulation, whose times are seconds from its start, on an axis that others share. */
export function SimulatedLanes({label, lanes, to}: {label: string; lanes: LanesAnswer; to: number}) {
  const [view, setView] = useRange("simzoom");
  const [folded, turn] = useFolds(lanes, "simfold", MOST_ROWS_BESIDE);
  const foldKey = lanes.nodes.map(folded).join();
  const layout = useMemo(() => layOut(lanes, folded), [lanes, foldKey]); // eslint-disable-line react-hooks/exhaustive-deps
  const x = useMemo<AxisOf>(() => ({kind: "time", domain: [0, to], label: "", format: (at) => (at === 0 ? "0" : duration(at))}), [to]);
  return (
    <Plot<LaneHit>
      label={label}
      summary={`${count(new Set(lanes.spans.trial_id).size)} trials, ${duration(lanes.to)}.`}
      height={layout.height}
      left={LEAD_PX}
      x={x}
      view={view}
      onView={setView}
      paint={(context, frame, style) => paintLanes(context, frame, style, layout, "trial", NO_PROMISES)}
      paintCursor={(context, frame, style, at) => paintLaneCursor(context, frame, style, layout, at)}
      find={(px, py, frame) => hit(layout, px, py, frame.x, frame.x.invert)}
      step={(at, move, frame) => step(layout, at, move, frame)}
      place={(at, frame) => placeOf(layout, at, frame)}
      describe={(at) => describe(lanes, at, NO_PROMISES, duration)}
      table={() => tableOf(lanes, duration)}
      lead={<Lead layout={layout} turn={turn} />}
    />
  );
}

function LanesPlot({lanes, now, window, color, group, view, setView, onWhy}: {
  lanes: LanesAnswer;
  now: number;
  window: Window;
  color: ColorBy;
  group: GroupBy;
  view: [number, number] | null;
  setView: (view: [number, number] | null) => void;
  onWhy: LanesProps["onWhy"] | undefined;
}) {
  const promises = usePromises();
  const grouped = useMemo(() => (group === "study" ? byStudy(lanes) : lanes), [lanes, group]);
  const [folded, turn] = useFolds(grouped, group === "study" ? "foldstudy" : "fold");
  const foldKey = grouped.nodes.map(folded).join();
  const layout = useMemo(() => layOut(grouped, folded), [grouped, foldKey]);
  // A young pool fills its picture.
  const begun = view ? Math.min(view[0], lanes.from) : earliest(lanes);
  const first = window === "all" ? begun : Math.max(begun, now - Number(window));
  const paint = useCallback<Painter>((context, frame, style) => paintLanes(context, frame, style, layout, color, promises),
    [layout, color, promises]);
  const x = useMemo<AxisOf>(() => ({kind: "time", domain: [first, now], label: ""}), [first, now]);
  return (
    <Plot<LaneHit>
      label="Slots"
      summary={summaryOf(lanes)}
      height={layout.height}
      left={LEAD_PX}
      x={x}
      view={view}
      onView={setView}
      paint={paint}
      paintCursor={(context, frame, style, at) => paintLaneCursor(context, frame, style, layout, at)}
      find={(px, py, frame) => hit(layout, px, py, frame.x, frame.x.invert)}
      step={(at, move, frame) => step(layout, at, move, frame)}
      place={(at, frame) => placeOf(layout, at, frame)}
      describe={(at) => describe(lanes, at, promises)}
      onOpen={(at) => open(lanes, at, onWhy)}
      table={() => tableOf(lanes)}
      lead={<Lead layout={layout} turn={turn} first={group === "study" ? 1 : 0} />}
    />
  );
}

function earliest(lanes: LanesAnswer): number {
  const first = lanes.spans.from.reduce((least, from) => Math.min(least, from), lanes.now);
  return Math.min(first, lanes.now - 60);
}

/** `first`: the number of a block's first row. */
function Lead({layout, turn, first = 0}: {layout: Layout; turn: (node: LaneNode) => void; first?: number}) {
  return (
    <>
      <span className="lane-use muted" style={{top: layout.use.top, height: layout.use.height}}>held</span>
      {layout.blocks.map((block) => {
        const node = layout.lanes.nodes[block.node] as LaneNode;
        const name = visible(node.name);
        // Of a folded one the number of slots stands beside it.
        const most = block.folded ? MOST_NAME + 2 - Math.max(2, String(node.slots).length) : MOST_NAME;
        return (
          <div key={block.node} className="lane-node" style={{top: block.top, height: block.height}}>
            <button type="button" className="lane-fold" aria-expanded={!block.folded} title={`${name}${node.gpu_type ? ", " + visible(node.gpu_type) : ""}`}
                    onClick={() => turn(node)}>
              <span aria-hidden="true">{block.folded ? "▸" : "▾"}</span> <bdi>{shortened(name, most)}</bdi>
            </button>
            {!block.folded && block.rows.length > 1 && (
              <span className="lane-type muted">{node.up || record !== null ? shortened(visible(node.gpu_type), MOST_NAME) : "down"}</span>
            )}
            {block.folded
              ? <span className="lane-slot muted">{node.slots}</span>
              : block.rows.map((row) => (
                <span key={row.slot} className="lane-slot muted" style={{top: row.top - block.top, height: row.height}}>{row.slot + first}</span>
              ))}
          </div>
        );
      })}
    </>
  );
}

function summaryOf(lanes: LanesAnswer): string {
  if (record !== null) {
    const held = new Set(lanes.spans.trial_id).size;
    return `${count(held)} ${held === 1 ? "trial" : "trials"} held slots, from ${time(lanes.from, lanes.now)}.`;
  }
  const {spans, use} = lanes;
  const past = lanes.to < lanes.now - PAST_S;
  const held = spans.to.flatMap((to, at) => (to === null || (past && to >= lanes.to) ? [at] : []));
  const slots = past ? use.slots[use.slots.length - 1] : lanes.nodes.reduce((sum, node) => sum + (node.up ? node.slots : 0), 0);
  const trials = new Set(held.map((at) => spans.trial_id[at])).size;
  const down = past ? [] : lanes.nodes.filter((node) => !node.up).map((node) => visible(node.name));
  const about = `${count(held.length)} of ${count(slots)} slots held by ${count(trials)} ${trials === 1 ? "trial" : "trials"}`;
  const missing = down.length === 0 ? "" : down.length <= 3 ? `; ${down.join(", ")} down` : `; ${down.length} nodes down`;
  return `${about}${past ? ` at ${time(lanes.to, lanes.now)}` : ""}, from ${clock(lanes.from)}${missing}.`;
}

function describe(lanes: LanesAnswer, at: LaneHit, promises: Promises, momentText?: (at: number) => string): string {
  const textOf = momentText ?? ((moment: number) => time(moment, lanes.now));
  if (at.kind === "mark") {
    const mark = lanes.marks[at.mark];
    if (!mark) return "";
    const study = mark.study === null ? "" : ` of ${shown(lanes, mark.study)}`;
    return `${textOf(mark.at)}: trial ${mark.trial ?? "?"}${study} ${told(mark.kind)}\n${visible(mark.reason)}`.trim();
  }
  const {spans} = lanes;
  const many = spans.count[at.span] ?? 1;
  const where = `${visible(lanes.nodes[spans.node[at.span] ?? -1]?.name ?? "?")}:${spans.slot[at.span]}`;
  const from = spans.from[at.span] ?? 0;
  const to = spans.to[at.span] ?? null;
  const when = `${textOf(from)} to ${to === null ? "now" : textOf(to)}, ${duration(endOf(lanes, at.span) - from)}`;
  if (many > 1) return `${many} short turns on ${where}\n${when}`;
  const promise = to === null ? promises.get(spans.trial_id[at.span] ?? -1) : undefined;
  return `trial ${spans.trial[at.span]} of ${shown(lanes, spans.study[at.span] ?? -1)} on ${where}\n${when}` +
    (promise === undefined ? "" : `\npromise ${number(promise)}`);
}

function shown(lanes: LanesAnswer, study: number): string {
  return shortened(visible(lanes.studies[study]?.name ?? "?"), 40);
}

const TOLD: Record<string, string> = {grow: "grew", shrink: "shrank", move: "moved", start: "started", prune: "was pruned", fail: "failed",
  finish: "ended", pause: "paused", resume: "went on", restart: "started again"};

export function told(kind: string): string {
  return TOLD[kind] ?? kind;
}

function open(lanes: LanesAnswer, at: LaneHit, onWhy: LanesProps["onWhy"] | undefined): void {
  const trial = at.kind === "span" ? lanes.spans.trial_id[at.span] : lanes.marks[at.mark]?.trial_id;
  if (trial !== undefined && trial !== null && (at.kind === "mark" || (lanes.spans.count[at.span] ?? 1) === 1)) onWhy?.(trial, at.at);
}

/** Left and right along a lane, up and down to the next that has something at that time. */
function step(layout: Layout, from: LaneHit | null, move: Move, frame: Frame): LaneHit | null {
  const {spans} = layout.lanes;
  const current = from?.kind === "span" ? from.span : null;
  const row = current === null ? null : rowOf(layout, current);
  if (current === null || !row) return firstOf(layout, frame);
  const place = row.spans.indexOf(current);
  const at = Math.min(Math.max(from?.at ?? 0, spans.from[current] ?? 0), endOf(layout.lanes, current));
  if (move === "up" || move === "down") {
    const direction = move === "up" ? -1 : 1;
    for (let next = layout.rows.indexOf(row) + direction; layout.rows[next]; next += direction) {
      const other = layout.rows[next];
      const span = other && (spanAt(layout, other, at, 0) ?? other.spans[other.spans.length - 1] ?? null);
      if (span !== null && span !== undefined) return middle(layout, span, frame, at);
    }
    return from;
  }
  const next = move === "home" ? 0 : move === "end" ? row.spans.length - 1 : place + (move === "left" ? -1 : 1);
  const span = row.spans[Math.min(row.spans.length - 1, Math.max(0, next))];
  return span === undefined ? from : middle(layout, span, frame);
}

function firstOf(layout: Layout, frame: Frame): LaneHit | null {
  for (const row of layout.rows) {
    const span = row.spans[row.spans.length - 1];
    if (span !== undefined) return middle(layout, span, frame);
  }
  return null;
}

/** In the middle of what is seen of it. */
function middle(layout: Layout, span: number, frame: Frame, wanted?: number): LaneHit {
  const from = Math.max(layout.lanes.spans.from[span] ?? 0, frame.x.domain[0]);
  const to = Math.min(endOf(layout.lanes, span), frame.x.domain[1]);
  const at = wanted !== undefined && wanted >= from && wanted <= to ? wanted : (from + to) / 2;
  return {kind: "span", span, at};
}

function placeOf(layout: Layout, at: LaneHit, frame: Frame): [number, number] {
  const row = at.kind === "span" ? rowOf(layout, at.span) : null;
  return [Math.min(frame.width, Math.max(0, frame.x(at.at))), row ? row.top + row.height / 2 : 0];
}

function tableOf(lanes: LanesAnswer, momentText?: (at: number) => string) {
  const {spans} = lanes;
  const textOf = momentText ?? ((moment: number) => time(moment, lanes.now));
  const order = spans.from.map((_, at) => at).sort((a, b) =>
    (spans.node[a] ?? 0) - (spans.node[b] ?? 0) || (spans.slot[a] ?? 0) - (spans.slot[b] ?? 0) || (spans.from[a] ?? 0) - (spans.from[b] ?? 0));
  return {
    columns: ["Node", "Slot", "Trial", "Study", "From", "Until", "For"],
    rows: order.slice(0, MOST_ROWS_IN_TABLE).map((at) => [
      visible(lanes.nodes[spans.node[at] ?? -1]?.name ?? "?"), spans.slot[at] ?? 0,
      (spans.count[at] ?? 1) > 1 ? `${spans.count[at]} short ones` : spans.trial[at] ?? 0, shown(lanes, spans.study[at] ?? -1),
      textOf(spans.from[at] ?? 0), spans.to[at] === null ? "still" : textOf(spans.to[at] ?? 0),
      duration(endOf(lanes, at) - (spans.from[at] ?? 0))]),
  };
}
