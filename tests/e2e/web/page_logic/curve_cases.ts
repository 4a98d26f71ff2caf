import type {Curve as Answered, Curves} from "../../../../tuner/web/page/contract";
import {type CurveContext, type CurveScales, nearestPoint, paintCurves} from "../../../../tuner/web/page/painters/curves";
import {fencedRange, smoothed, wholeRange} from "../../../../tuner/web/page/painters/curve_values";
import {canBeLog, lastFinite, remember, shownCurve, xRange, yRange} from "../../../../tuner/web/page/pages/study/curve_set";
import {keptCurves, withPart} from "../../../../tuner/web/page/pages/study/use_curves";
import {check, equal, test} from "./cases";

/** Keeps the calls that put something on the canvas. */
class Recorder implements CurveContext {
  strokeStyle: string | CanvasGradient | CanvasPattern = "";
  fillStyle: string | CanvasGradient | CanvasPattern = "";
  globalAlpha = 1;
  lineWidth = 1;
  lineJoin: CanvasLineJoin = "miter";
  calls: string[] = [];
  private dash = "";
  beginPath(): void {}
  setLineDash(segments: number[]): void {
    this.dash = segments.join(" ");
  }
  moveTo(x: number, y: number): void {
    this.calls.push(`M ${x} ${y}`);
  }
  lineTo(x: number, y: number): void {
    this.calls.push(`L ${x} ${y}`);
  }
  stroke(): void {
    this.calls.push(`stroke ${this.strokeStyle} ${this.lineWidth} ${this.globalAlpha} [${this.dash}]`);
  }
  fillRect(x: number, y: number, width: number, height: number): void {
    this.calls.push(`R ${x} ${y} ${width} ${height}`);
  }
}

const plain: CurveScales = {x: (value) => value, y: (value) => value, width: 100, height: 100};
const style = {color: "red", width: 1, alpha: 1, dash: []};

function calls(x: number[], y: number[], scales = plain): string[] {
  const recorder = new Recorder();
  paintCurves(recorder, [{x: Float64Array.from(x), y: Float64Array.from(y)}], scales, [style]);
  return recorder.calls;
}

test("a curve is a line through its points", () => {
  equal(calls([1, 2.4, 3], [5, 6, 7]), ["M 1 5", "L 2 6", "L 3 7", "stroke red 1 1 []"]);
});

test("of a column of pixels the lowest, highest and last are drawn", () => {
  equal(calls([1, 2, 2.1, 2.2, 2.3, 3], [5, 6, 90, 1, 7, 8]),
        ["M 1 5", "L 2 6", "L 2 1", "L 2 90", "L 2 7", "L 3 8", "stroke red 1 1 []"]);
});

test("no spike is lost, whatever the number of points", () => {
  let seed = 7;
  const random = () => (seed = (seed * 16807) % 2147483647) / 2147483647;
  const x = Array.from({length: 5000}, (_, i) => i / 50);
  const y = x.map(() => 40 + 20 * random());
  y[2511] = 99;
  y[3777] = 2;
  const covered = new Map<number, [number, number]>();
  let at: [number, number] | null = null;
  for (const call of calls(x, y)) {
    const [kind, px, py] = call.split(" ");
    if (kind !== "M" && kind !== "L") continue;
    const [column, row] = [Number(px), Number(py)];
    const before = covered.get(column) ?? [row, row];
    const from = at !== null && at[0] === column ? at[1] : row;
    covered.set(column, [Math.min(before[0], row, from), Math.max(before[1], row, from)]);
    at = [column, row];
  }
  const wanted = new Map<number, [number, number]>();
  x.forEach((value, i) => {
    const [column, row] = [Math.round(value), Math.round(y[i] ?? 0)];
    const before = wanted.get(column) ?? [row, row];
    wanted.set(column, [Math.min(before[0], row), Math.max(before[1], row)]);
  });
  equal([...covered], [...wanted]);
  check(calls(x, y).length < 5 * 101, "at most four points a column are drawn");
});

test("a value that is not finite is a gap, and a lone point is a dot", () => {
  equal(calls([1, 2, 3, 4, 5], [1, 2, NaN, 4, Infinity]), ["M 1 1", "L 2 2", "M 4 4", "stroke red 1 1 []", "R 2 2 4 4"]);
  equal(calls([5], [9]), ["M 5 9", "stroke red 1 1 []", "R 3 7 4 4"]);
});

test("what lies outside is left out but for the line to the edge", () => {
  equal(calls([-50, -40, 50, 150, 160], [1, 2, 3, 4, 5]), ["M -40 2", "L 50 3", "L 150 4", "stroke red 1 1 []"]);
});

test("huge values do not reach the canvas", () => {
  equal(calls([1, 2], [1, 1e30]), ["M 1 1", "L 2 4100", "stroke red 1 1 []"]);
});

test("each curve has its own style, and the last lies on top", () => {
  const recorder = new Recorder();
  const curve = {x: Float64Array.from([1, 2]), y: Float64Array.from([1, 2])};
  paintCurves(recorder, [curve, curve, curve], plain,
              [style, {color: "blue", width: 3, alpha: 0.5, dash: [5, 3]}, {...style, alpha: 0}]);
  equal(recorder.calls.filter((call) => call.startsWith("stroke")), ["stroke red 1 1 []", "stroke blue 3 0.5 [5 3]"]);
  equal(recorder.globalAlpha, 1);
});

test("the nearest point is found, and none beyond reach", () => {
  const curves = [{x: Float64Array.from([0, 10, 20]), y: Float64Array.from([0, 0, 0])},
                  {x: Float64Array.from([0, 10, 20]), y: Float64Array.from([50, NaN, 50])}];
  equal(nearestPoint(curves, plain, 11, 3, 10), {curve: 0, point: 1});
  equal(nearestPoint(curves, plain, 19, 48, 10), {curve: 1, point: 2});
  equal(nearestPoint(curves, plain, 10, 25, 10), null);
});

test("smoothing begins at the first value and jumps over gaps", () => {
  const out = smoothed(Float64Array.from([1, NaN, 1, 3]), 0.5);
  equal([out[0], Number.isNaN(out[1]), out[2]], [1, true, 1]);
  check((out[3] ?? 0) > 1 && (out[3] ?? 0) < 3, `the last is ${out[3]}`);
  const raw = Float64Array.from([1, 2]);
  check(smoothed(raw, 0) === raw, "a weight of 0 changes nothing");
});

test("outliers on the worse side are left outside and counted", () => {
  const values = Float64Array.from([...Array.from({length: 50}, (_, i) => i / 50), 5000, 4000]);
  const range = fencedRange(values, false);
  check(range.high < 10 && range.low < 0.01 && range.outside === 2, JSON.stringify(range));
  check(fencedRange(values, true).high > 4999, "what is better is never left outside");
  check(wholeRange(values).high > 4999, "all values");
});

test("a range can be drawn even of nothing, of one value, and on a logarithmic axis", () => {
  for (const values of [[], [NaN, Infinity], [3, 3], [0], [-1, 0, 2]]) {
    for (const positive of [false, true]) {
      const {low, high} = fencedRange(Float64Array.from(values), false, positive);
      check(low < high && (!positive || low > 0), `${values}: ${low} to ${high}`);
    }
  }
});

const answered: Answered = {trial_id: 4, trial: 3, state: "running", infeasible: null, points: 900, x: [1, 2, 3], y: [0.1, null, 0.3], promise: null,
                            goodput: null, batch_size: null};

test("reports that came after the answer are drawn, each once", () => {
  const newer = {step: [], at: [], value: []};
  remember(newer, 3, 103, 9);
  remember(newer, 4, 104, 0.4);
  const curve = shownCurve(answered, "step", 0, newer);
  equal([curve.x, curve.y, curve.points], [[1, 2, 3, 4], [0.1, NaN, 0.3, 0.4], 900]);
  equal(shownCurve(answered, "progress", 0, newer).x, [1, 2, 3]);
});

test("durations begin at zero", () => {
  equal(shownCurve({...answered, x: [1000, 1010, 1030]}, "duration", 0, undefined).x, [0, 10, 30]);
  equal(shownCurve({...answered, x: [1000, 1010, 1030]}, "time", 0, undefined).x, [1000, 1010, 1030]);
});

test("a part in more detail takes its place in the curve", () => {
  const all = shownCurve({...answered, x: [0, 10, 20, 30], y: [0, 1, 2, 3]}, "step", 0, undefined);
  const part = shownCurve({...answered, x: [10, 15, 20], y: [1, 9, 2]}, "step", 0, undefined);
  equal([withPart(all, part, 0).x, withPart(all, part, 0).y], [[0, 10, 15, 20, 30], [0, 1, 9, 2, 3]]);
  equal(withPart(all, {...part, x: new Float64Array(0)}, 0).x, [0, 10, 20, 30]);
});

test("axes reach over all curves", () => {
  const curves = [shownCurve(answered, "step", 0, undefined), shownCurve({...answered, x: [0, 9, 11]}, "step", 0, undefined)];
  equal(xRange(curves, false), [0, 11]);
  equal(xRange(curves, true), [1, 11]);
  equal(xRange([], false), [0, 1]);
  equal(xRange([shownCurve({...answered, x: [5]}, "step", 0, undefined)], false), [4, 6]);
  check(yRange(curves, true, false, true).high > 0.3, "the greatest is in sight");
  equal([canBeLog([Float64Array.from([-1, 0])]), canBeLog([Float64Array.from([-1, 1])])], [false, true]);
  equal(lastFinite(Float64Array.from([1, 2, NaN])), 1);
});

test("curves stay until the next are there, but not those of another metric", () => {
  const first = {version: 1} as unknown as Curves;
  const kept = keptCurves({objective: 0, data: null}, "best", 0, first);
  equal(keptCurves(kept, "more", 0, null), {objective: 0, data: first});
  equal(keptCurves(kept, "other", 1, null), {objective: 1, data: null});
  equal([keptCurves(kept, null, 0, null).data, keptCurves(kept, null, 0, first).data], [null, null]);
});
