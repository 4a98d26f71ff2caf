// What painters paint of fixed data. page_logic_test.py holds it to ../display_lists/NAME.txt.

import type {Lanes} from "../../../../tuner/web/page/contract";
import {frontEdge} from "../../../../tuner/web/page/pages/study/analysis/front";
import {paintField} from "../../../../tuner/web/page/pages/study/analysis/contour_plot";
import type {Dimension} from "../../../../tuner/web/page/pages/study/analysis/dimensions";
import {paintFront} from "../../../../tuner/web/page/pages/study/analysis/front_panel";
import {byShade, paintLines} from "../../../../tuner/web/page/pages/study/analysis/parallel_plot";
import {paintSlice} from "../../../../tuner/web/page/pages/study/analysis/slice_plot";
import {spreadOf} from "../../../../tuner/web/page/pages/study/analysis/spread";
import {paintSpread} from "../../../../tuner/web/page/pages/study/analysis/spread_panel";
import {descentOf} from "../../../../tuner/web/page/pages/study/lineage/lineage";
import {paintDescent, paintLane} from "../../../../tuner/web/page/pages/study/lineage/lineage_painter";
import {shownCurve} from "../../../../tuner/web/page/pages/study/curve_set";
import {paintLinks, paintShown} from "../../../../tuner/web/page/pages/study/curves_plot";
import {paintSlots} from "../../../../tuner/web/page/pages/trial/slots_plot";
import {byStudy} from "../../../../tuner/web/page/plot/lane_groups";
import {paintLaneCursor, paintLanes} from "../../../../tuner/web/page/plot/lane_painter";
import {layOut} from "../../../../tuner/web/page/plot/lane_rows";
import type {Frame} from "../../../../tuner/web/page/plot/plot";
import {type Range, scaleOf} from "../../../../tuner/web/page/plot/scales";
import type {Style} from "../../../../tuner/web/page/plot/style";
import {population} from "./lineage_cases";
import {Recorder} from "./recorder";

const STYLE: Style = {
  text: "#111111", muted: "#777777", line: "#dddddd", strongLine: "#999999", panel: "#ffffff", free: "#eeeeee", accent: "#0055aa", good: "#008800",
  warn: "#aa7700", bad: "#cc0000", onSeries: "#fefefe", series: ["#000001", "#000002", "#000003", "#000004", "#000005", "#000006", "#000007", "#fffff8"],
  rampLow: "#ccddee", rampHigh: "#001122", font: "12px sans-serif",
};

function frame(x: Range, y: Range, kind: "linear" | "log" = "linear", height = 100): Frame {
  return {x: scaleOf({kind, domain: x, label: ""}, x, [0, 300]), y: scaleOf({kind: "linear", domain: y, label: ""}, y, [height, 0]), width: 300, height};
}

type Bar = [node: number, slot: number, trial: number, study: number, from: number, to: number | null, count?: number];
const BARS: readonly Bar[] = [
  [0, 0, 1, 0, 0, 40], [0, 0, 3, 1, 40, null], [0, 1, 1, 0, 20, 60], [0, 1, 4, 0, 60, 90, 7], [1, 0, 2, 1, 10, 50], [1, 0, 1, 0, 50.5, null],
];
const of = <K extends keyof Bar>(key: K) => BARS.map((bar) => bar[key]) as Bar[K][];
const KINDS = ["start", "grow", "shrink", "prune", "fail", "pause", "drain", "node_lost", "node_back"];
const LANES: Lanes = {
  version: 1, revision: 1, incarnation: "0", now: 100, from: 0, to: 100,
  nodes: [{name: "oak", slots: 2, gpu_type: "H200", up: true}, {name: "elm", slots: 1, gpu_type: "", up: true}],
  studies: [{id: 1, name: "vision"}, {id: 2, name: "speech"}],
  spans: {node: of(0), slot: of(1), trial_id: of(2), trial: of(2), study: of(3), from: of(4), to: of(5), count: BARS.map((bar) => bar[6] ?? 1)},
  marks: KINDS.map((kind, i) => ({at: 5 + 10 * i, kind, trial_id: i < 6 ? 1 + (i % 3) : null, trial: i < 6 ? 1 + (i % 3) : null, study: 0,
                                  node: i < 6 ? null : i % 2, reason: ""})),
  use: {at: [0, 25, 50, 75], held: [1, 3, 2, 3], slots: [3, 3, 3, 2]},
};

function lanes(grouped: Lanes, folded: string, by: "trial" | "study" | "promise"): string {
  const layout = layOut(grouped, (node) => node.name === folded);
  const at = frame([0, 100], [0, layout.height], "linear", layout.height);
  return Recorder.of((context) => paintLanes(context, at, STYLE, layout, by, new Map([[1, 0.5]]))) + "cursor\n" +
    Recorder.of((context) => paintLaneCursor(context, at, STYLE, layout, {kind: "span", span: 0, at: 20}));
}

function curve(id: number, state: string, y: number[], weight: number, infeasible: boolean | null = null) {
  return shownCurve({trial_id: id, trial: id, state, infeasible, points: y.length, x: y.map((_, i) => i), y, promise: null, goodput: null, batch_size: null},
                    "step", weight, undefined);
}

function curves(weight: number): string {
  const all = [curve(1, "complete", [5, 4, 2, NaN, 1], weight), curve(2, "pruned", [6, 7], weight), curve(3, "running", [3], weight)];
  const lines = all.map((one) => ({x: one.x, y: one.smooth}));
  return Recorder.of((context) => paintShown(context, frame([0, 4], [0, 8]), STYLE, all, lines, {
    chosen: new Set([2]), best: 1, smooth: weight > 0, colors: undefined}));
}

function infeasible(): string {
  const all = [curve(1, "complete", [5, 4, 2], 0, true)];
  return Recorder.of((context) => paintShown(context, frame([0, 4], [0, 8]), STYLE, all, all, {
    chosen: new Set(), best: null, smooth: false, colors: undefined}));
}

const POINTS = [{id: 1, trial: 1, x: 0, y: 3}, {id: 2, trial: 2, x: 5, y: 8}, {id: 3, trial: 3, x: 10, y: 5}];

function parallel(): string {
  const lines = {parts: Float64Array.of(0, 1, 0.5, 0.5, NaN, 0, 1, 0, 1), axes: 3, count: 3, shade: Float64Array.of(-1, 0, 1)};
  return Recorder.of((context) => paintLines(context, lines, byShade(lines), [10, 150, 290], STYLE));
}

function contour(): string {
  const dimension = (words: string[] | null): Dimension => ({column: "p:x", label: "x", words, log: false, whole: false, low: 0, high: words ? words.length - 1 : 10});
  const field = {columns: 3, rows: 2, values: Float64Array.of(0, 0.5, NaN, 1, 0.25, 0.75)};
  return Recorder.of((context) => paintField(context, frame([0, 10], [-0.5, 1.5]), STYLE, field, dimension(null), dimension(["a", "b"]), (value) => value));
}

export function displayLists(): Record<string, string> {
  return {
    lanes_by_trial: lanes(LANES, "", "trial"),
    lanes_folded_by_promise: lanes(LANES, "oak", "promise"),
    lanes_of_studies: lanes(byStudy(LANES), "", "study"),
    curves: curves(0),
    curves_smoothed: curves(0.5),
    curves_infeasible: infeasible(),
    slots: Recorder.of((context) => paintSlots(context, frame([0, 100], [0, 2.5]), STYLE, {
      trial: 7, steps: {at: [10, 30, 60], slots: [1, 2, 0]}, last: 90,
      decisions: [[10, 0, 1], [30, 1, 2], [60, 2, 0], [70, 0, 0], [500, 1, 2]].map(([at, from_slots, to_slots]) => ({
        at: at!, from_slots: from_slots!, to_slots: to_slots!}))})),
    slice: Recorder.of((context) => paintSlice(context, frame([0, 10], [0, 10]), STYLE, POINTS, 2)),
    contour: contour(),
    curve_links: Recorder.of((context) => paintLinks(context, frame([0, 10], [0, 10]), STYLE, [{id: 3, from: [5, 2], to: [6, 4]}])),
    lineage: Recorder.of((context) => {
      const {members} = descentOf(population(), "minimize", 10);
      paintDescent(context, frame([0, 30], [108, 0], "linear", 108), STYLE, members, 11);
      paintLane(context, frame([0, 30], [108, 0], "linear", 108), STYLE, 2);
    }),
    parallel: parallel(),
    front: Recorder.of((context) => paintFront(context, frame([0, 10], [0, 10]), STYLE, POINTS.map((one) => ({...one, onFront: one.id < 3, infeasible: false})),
                                               frontEdge(POINTS.slice(0, 2), true, false))),
    front_infeasible: Recorder.of((context) => paintFront(context, frame([0, 10], [0, 10]), STYLE,
                                                           POINTS.slice(0, 2).map((one) => ({...one, onFront: false, infeasible: one.id < 2})), [])),
    spread: Recorder.of((context) => {
      paintSpread(context, frame([0, 10], [0, 1]), STYLE, spreadOf({value: [2, 5, 9], share: [0.5, 0.75, 1]}, false));
      paintSpread(context, frame([0, 10], [0, 1]), STYLE, spreadOf({value: [2, 5, 9], share: [0.5, 0.75, 1]}, true));
    }),
  };
}
