import type {Condition} from "../../../../tuner/web/page/table/conditions";
import {TrialsStore} from "../../../../tuner/web/page/table/trials_store";
import {type Dimension, brushOf, conditionBetween, numberAt, partOf, partOfNumber, withBrush} from "../../../../tuner/web/page/pages/study/analysis/dimensions";
import {bestFirst, frontEdge} from "../../../../tuner/web/page/pages/study/analysis/front";
import {placeAt, spreadOf} from "../../../../tuner/web/page/pages/study/analysis/spread";
import {fieldOf} from "../../../../tuner/web/page/pages/study/analysis/field";
import {check, equal, test} from "./cases";

const LR: Dimension = {column: "p:lr", label: "lr", words: null, log: true, whole: false, low: 1e-4, high: 1};
const LAYERS: Dimension = {column: "p:layers", label: "layers", words: null, log: false, whole: true, low: 1, high: 9};
const RULE: Dimension = {column: "p:rule", label: "rule", words: ["linear", "sqrt", "adascale"], log: false, whole: false, low: 0, high: 2};

test("axes go from 0 to 1 by their own scale", () => {
  equal([partOfNumber(LR, 1e-4), partOfNumber(LR, 1e-2), partOfNumber(LR, 1)].map((part) => Math.round(part * 1e6) / 1e6), [0, 0.5, 1]);
  equal(partOfNumber(LAYERS, 5), 0.5);
  equal(numberAt(RULE, 0.6), 1);
  equal(Math.round(numberAt(LR, 0.5) * 1e6) / 1e6, 0.01);
});

test("a part of an axis is a condition of the table, and the other way round", () => {
  equal(conditionBetween(LAYERS, 0.75, 0.25), {kind: "range", column: "p:layers", low: 3, high: 7});
  equal(conditionBetween(LAYERS, 0.5, 1), {kind: "range", column: "p:layers", low: 5, high: Infinity});
  equal(conditionBetween(LAYERS, 0, 1), null);
  equal(conditionBetween(LAYERS, 0.3, 0.7), {kind: "range", column: "p:layers", low: 4, high: 6});
  equal(conditionBetween(LAYERS, 0.39, 0.4), {kind: "range", column: "p:layers", low: 4, high: 4});
  equal(conditionBetween(RULE, 0.3, 1), {kind: "words", column: "p:rule", words: ["sqrt", "adascale"]});
  equal(conditionBetween(RULE, 0.6, 0.7), {kind: "words", column: "p:rule", words: ["sqrt"]});
  for (const of of [LR, LAYERS, RULE]) {
    const condition = conditionBetween(of, 0.5, 1);
    const brush = condition && brushOf(of, [condition]);
    check(brush !== null && Math.abs(brush[0] - 0.5) < 1e-3 && brush[1] === 1, `${of.label}: ${JSON.stringify(brush)}`);
  }
  equal(brushOf(LR, [{kind: "range", column: "p:layers", low: 1, high: 2}]), null);
});

test("a brush takes the place of its axis's condition and leaves the others", () => {
  const others: Condition[] = [{kind: "words", column: "state", words: ["complete"]}, {kind: "contains", column: "p:rule", text: "s"}];
  const first = conditionBetween(RULE, 0, 0.5);
  const second = conditionBetween(RULE, 0.5, 1);
  const both = withBrush([others[0]!, ...withBrush([others[1]!], RULE, first)], RULE, second);
  equal(both, [others[0], others[1], second]);
  equal(withBrush(both, RULE, null), others);
});

test("trials without a parameter have no place on its axis", () => {
  const trials = new TrialsStore();
  trials.merge({columns: {id: [1, 2, 3], "p:layers": [5, null, 9], "p:rule": [1, 0, null]}, words: {"p:rule": ["sqrt", "adascale"]}});
  equal([0, 1, 2].map((row) => partOf(LAYERS, trials, row)), [0.5, NaN, 1]);
  equal([0, 1, 2].map((row) => partOf(RULE, trials, row)), [1, 0.5, NaN]);
});

test("what lies between trials is near the nearest, and nothing is said far from all", () => {
  const field = fieldOf({x: Float64Array.of(0.1, 0.3), y: Float64Array.of(0.1, 0.1), value: Float64Array.of(1, 3)}, 10, 10);
  const at = (column: number, row: number) => field.values[row * 10 + column]!;
  check(at(0, 0) < 1.5 && at(3, 0) > 2.5, `${at(0, 0)} ${at(3, 0)}`);
  check(at(1, 0) > 1 && at(1, 0) < 3, String(at(1, 0)));
  check(Number.isNaN(at(9, 9)), String(at(9, 9)));
});

test("the edge of a front turns by the directions", () => {
  const corners = (points: [number, number][], maximizeX: boolean, maximizeY: boolean) =>
    frontEdge(points.map(([x, y]) => ({x, y})), maximizeX, maximizeY).map(({x, y}) => [x, y]);
  equal(corners([[3, 1], [1, 5], [2, 2]], false, false), [[1, 5], [2, 5], [2, 2], [3, 2], [3, 1]]);
  equal(corners([[1, 1], [3, 5], [2, 2]], true, false), [[1, 1], [1, 2], [2, 2], [2, 5], [3, 5]]);
  equal(corners([[3, 1], [1, 5]], true, true), [[1, 5], [1, 1], [3, 1]].map(([x, y]) => [x, x === 1 && y === 1 ? 1 : y]));
  // Of a third objective: what others beat in these two is not on the edge.
  equal(corners([[1, 1], [2, 2]], false, false), [[1, 1]]);
  equal(corners([], false, true), []);
});

test("the best of a front come first, and last those without a number", () => {
  const front = [[1, null], [2, -3], [3, 5], [4, null], [5, -3]].map(([trial, value]) => ({trial_id: trial!, trial: trial!, values: [value!]}));
  equal([false, true].map((maximize) => bestFirst(front, maximize).map(({trial}) => trial)), [[2, 5, 3, 1, 4], [3, 2, 5, 1, 4]]);
});

test("values are spread from the best on", () => {
  const told = {value: [1, 2, 4], share: [0.25, 0.75, 1]};
  equal(spreadOf(told, false), told);
  equal(spreadOf(told, true), {value: [4, 2, 1], share: [0.25, 0.75, 1]});
  equal(spreadOf(undefined, true), {value: [], share: []});
  equal([0.5, 1, 3, 9].map((at) => placeAt(spreadOf(told, false), at)), [null, 0, 1, 2]);
  equal([0.5, 1, 3, 9].map((at) => placeAt(spreadOf(told, true), at)), [2, 2, 0, null]);
});
