import {type CurveContext} from "../../../../tuner/web/page/painters/curves";
import {paintParallel} from "../../../../tuner/web/page/painters/parallel";
import {type ColumnAxis, columnAxis, groupsByValue, withCondition} from "../../../../tuner/web/page/pages/study/analysis/axes";
import type {Condition} from "../../../../tuner/web/page/table/conditions";
import {TrialsStore} from "../../../../tuner/web/page/table/trials_store";
import {check, equal, test} from "./cases";

function filled(): TrialsStore {
  const store = new TrialsStore();
  store.merge({columns: {id: [1, 2, 3, 4], number: [0, 1, 2, 3], "p:lr": [1e-4, 1e-2, 1, null], "p:n": [1, 3, 2, 5], "p:rule": [0, 1, 1, null]},
               words: {"p:rule": ["sqrt", "linear"]}});
  return store;
}

function axisOf(column: string, log = false, kind: "float" | "int" = "float"): ColumnAxis {
  const axis = columnAxis(filled(), column, column, {name: column.slice(2), kind, low: null, high: null, log, choices: []});
  if (axis === null) throw new Error(`${column} is no axis`);
  return axis;
}

test("values are on an axis as the search space has them", () => {
  equal(axisOf("p:lr", true).positions.map((at) => Math.round(at * 1000) / 1000), [0, 0.5, 1, NaN]);
  equal(axisOf("p:n").positions, [0, 0.5, 0.25, 1]);
  equal(axisOf("p:rule").positions, [0.75, 0.25, 0.25, NaN]);
  equal(axisOf("p:n", false, "int").ticks.map(({text}) => text), ["1", "2", "3", "4", "5"]);
  equal(columnAxis(filled(), "p:gone", "", undefined), null);
});

test("a part of an axis is a filter, and that filter is the part", () => {
  const axis = axisOf("p:lr", true);
  const condition = axis.conditionOf(0.25, 1);
  equal(condition, {kind: "range", column: "p:lr", low: 1e-3, high: Infinity});
  equal(axis.partOf(condition as Condition)?.map((at) => Math.round(at * 100) / 100), [0.25, 1]);
  const words = axisOf("p:rule");
  equal(words.conditionOf(0.6, 0.9), {kind: "words", column: "p:rule", words: ["sqrt"]});
  equal(words.conditionOf(0.4, 0.6), null);
  equal(words.partOf({kind: "words", column: "p:rule", words: ["sqrt", null]}), [0.5, 1]);
  equal(words.partOf({kind: "range", column: "p:lr", low: 0, high: 1}), null);
});

test("an axis has one filter, and a whole axis none", () => {
  const axis = axisOf("p:lr", true);
  const state: Condition = {kind: "words", column: "state", words: ["complete"]};
  const before: Condition = {kind: "range", column: "p:lr", low: 0, high: 1};
  equal(withCondition([before, state], axis, axis.conditionOf(0.5, 1)), [state, {kind: "range", column: "p:lr", low: 0.01, high: Infinity}]);
  equal(withCondition([before, state], axis, axis.conditionOf(0, 1)), [state]);
  equal(withCondition([before, state], axis, null), [state]);
});

test("the best are in the last group, whatever is better", () => {
  const values = Float64Array.from([4, 1, 2, 3, NaN]);
  equal(groupsByValue(values, true, 2), [1, 0, 0, 1, -1]);
  equal(groupsByValue(values, false, 2), [0, 1, 1, 0, -1]);
  equal(groupsByValue(new Float64Array(0), true, 4), []);
});

test("lines of one colour are one path, with gaps where there is no value", () => {
  const calls: string[] = [];
  const context = {
    strokeStyle: "", fillStyle: "", globalAlpha: 1, lineWidth: 1, lineJoin: "miter", setLineDash: () => undefined, fillRect: () => undefined,
    beginPath: () => calls.push("begin"), moveTo: (x: number, y: number) => calls.push(`M ${x} ${y}`),
    lineTo: (x: number, y: number) => calls.push(`L ${x} ${y}`), stroke: () => calls.push("stroke"),
  } as unknown as CurveContext;
  const axes = [[0, 1, 0.5], [1, NaN, 0.5], [0, 0.25, 0.5]].map((one) => Float64Array.from(one));
  paintParallel(context, axes, [0, 1, 2], (row) => (row === 2 ? 5 : 0), {x: [0, 50, 100], height: 100}, {colors: ["red", "blue"], alpha: 1, width: 1});
  equal(calls, ["begin", "M 0 100", "L 50 0", "L 100 100", "M 0 0", "M 100 75", "stroke"]);
  check(context.globalAlpha === 1, "the canvas is left as it was");
});
