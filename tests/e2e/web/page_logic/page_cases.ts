import type {Changed, Decision, Lanes, Study, TrialSpan} from "../../../../tuner/web/page/contract";
import {differencesOf, valueRows} from "../../../../tuner/web/page/pages/compare/differences";
import {fileName} from "../../../../tuner/web/page/pages/study/download";
import {changesGiven, choiceText, fieldText, isChanged, noneOf, objectGiven, parametersGiven, wanted} from "../../../../tuner/web/page/pages/study/enqueue_fields";
import {objectiveOf} from "../../../../tuner/web/page/pages/study/metric_choice";
import {parametersOf} from "../../../../tuner/web/page/pages/study/parameters";
import {CloneNews} from "../../../../tuner/web/page/pages/trial/clone_news";
import {logText} from "../../../../tuner/web/page/pages/trial/log_text";
import {measuredSpeedups} from "../../../../tuner/web/page/pages/trial/measured";
import {slotSteps, slotsAt} from "../../../../tuner/web/page/pages/trial/slots_steps";
import {bestLine, withNewest} from "../../../../tuner/web/page/parts/best_line";
import {byStudy} from "../../../../tuner/web/page/plot/lane_groups";
import {nodesInUse} from "../../../../tuner/web/page/plot/lane_nodes";
import {TrialsStore} from "../../../../tuner/web/page/table/trials_store";
import {equal, test} from "./cases";

test("colours and moves of terminals are taken out of a log", () => {
  equal(logText("\u001b[1;31mred\u001b[0m \u001b]0;title\u0007text\u001b[2K"), "red text");
});

test("a bar that is written over stands as it was last", () => {
  equal(logText("10%\r50%\r100%\ndone\r\nnext\r"), "100%\ndone\nnext");
});

test("what cannot be seen in a log is spelt", () => {
  equal(logText("a\u0000b\u202ec\td"), "a\\u0000b\\u202Ec\td");
});

test("what differs is found, also what only one has", () => {
  const found = differencesOf([{lr: 0.1, rule: "a", only: null}, {lr: 0.1, rule: "b"}], ["rule"]);
  equal(found.map(({name, differs}) => [name, differs]), [["rule", true], ["lr", false], ["only", true]]);
  equal(differencesOf([{constructor: 1}, {}], []).map(({values}) => values), [[1, undefined]]);
});

test("values of several metrics are compared by their names", () => {
  const of = (values: (number | null)[], metrics: string[]) => ({value: values[0] ?? null, values, metrics});
  equal(valueRows([of([1, null], ["loss", "ms"]), of([3, 4], ["loss", "ms"])]), [{name: "loss", values: [1, 3]}, {name: "ms", values: [null, 4]}]);
  equal(valueRows([of([1, 2], ["loss", "ms"]), of([3, 4], ["loss", "mb"]), of([5], [])]),
        [{name: "loss", values: [1, 3, 5]}, {name: "value 2", values: [2, 4, null]}]);
  equal(valueRows([of([], [])]), [{name: "value", values: [null]}]);
});

test("a metric is one that the study has", () => {
  equal([objectiveOf("1", 2), objectiveOf("2", 2), objectiveOf("x", 2), objectiveOf("", 2), objectiveOf("0", 0)], [1, 0, 0, 0, 0]);
});

test("file names are those of every file system", () => {
  equal(fileName("../a b/ü:%", ".csv"), "_a_b_.csv");
  equal(fileName("..", ".csv"), "study.csv");
  equal(fileName("x".repeat(500), ".csv").length, 84);
});

test("parameters that a trial has not are left out", () => {
  const store = new TrialsStore();
  store.merge({columns: {id: [1], number: [0], "p:lr": [0.1], "p:none": [null], "p:rule": [0], value: [1]}, words: {"p:rule": ["sqrt"]}});
  equal(parametersOf(store, 0), {lr: 0.1, rule: "sqrt"});
  equal(parametersOf(store, undefined), {});
});

const spans: TrialSpan[] = [
  {from: 10, to: 20, slots: [{node: "a", slot: 0}]},
  {from: 15, to: 20, slots: [{node: "b", slot: 3}, {node: "b", slot: 1}]},
  {from: 20, to: null, slots: [{node: "a", slot: 2}]},
];

test("a trial's page reads again what may be a clone of it", () => {
  const news = new CloneNews(1, 5);
  news.show([{trial_id: 17, trial: 7, state: "running", step: 3}, {trial_id: 18, trial: 8, state: "waiting", step: null}]);
  const takes = (...trials: [number: number, study: number][]) =>
    news.take({trials: trials.map(([number, study_id]) => ({id: 10 + number, study_id, number}))} as unknown as Changed);
  equal([takes([4, 1]), takes([20, 2]), takes([9, 1]), takes([9, 1]), takes([7, 1]), takes([8, 1]), takes([3, 1], [10, 1])],
        [false, false, true, false, false, true, true]);
  news.show([{trial_id: 18, trial: 8, state: "running", step: 4}]);
  equal([takes([8, 1]), takes()], [false, false]);
});

test("slots over time follow from overlapping spans", () => {
  equal(slotSteps(spans, 30), {at: [10, 15, 20, 30], slots: [1, 3, 1, 0]});
  equal(slotSteps([], 30), {at: [], slots: []});
});

test("where a trial was is told by node", () => {
  equal(slotsAt(spans, 16, 30), "a: 0 · b: 1, 3");
  equal(slotsAt(spans, 30, 30), "a: 2");
  equal(slotsAt(spans, 5, 30), "");
});

test("a study's lanes are those of nodes on which it has been", () => {
  const node = (name: string) => ({name, slots: 1, gpu_type: "", up: true});
  const mark = (of: number | null) => ({at: 1, kind: "start", trial_id: 1, trial: 0, study: 0, node: of, reason: ""});
  const lanes = {nodes: [node("a"), node("b"), node("c")], spans: {node: [2, 2]}, marks: [mark(2), mark(0), mark(null)]} as unknown as Lanes;
  const found = nodesInUse(lanes);
  equal([found.nodes.map(({name}) => name), found.spans.node, found.marks.map((one) => one.node)], [["c"], [0, 0], [0, null, null]]);
});

const space = (over: object = {}) => ({
  parameters: [{name: "lr", kind: "float", low: 1e-5, high: 0.1, log: true, choices: []}, {name: "layers", kind: "int", low: 1, high: 8, log: false, choices: []},
               {name: "width", kind: "choice", low: null, high: null, log: false, choices: ["64", "128", "true", "wide"]},
               {name: "__proto__", kind: "float", low: null, high: null, log: false, choices: []}],
  definition: {search_space: {width: {_type: "choice", _value: [64, "128", true, {_name: "wide"}]}}}, ...over}) as unknown as Study;
const given = (texts: Record<string, string>) => parametersGiven(space(), new Map(Object.entries(texts)));

test("what is typed becomes parameters, and what is empty is left out", () => {
  equal(given({lr: " 1e-3 ", layers: "", width: "64"}), {parameters: {lr: 0.001, width: 64}, wrong: null});
  equal(given({}), {parameters: {}, wrong: null});
});

test("a choice is of the kind that it is in the study's file", () => {
  equal(["64", "128", "true", "wide"].map((width) => given({width}).parameters?.["width"]), [64, "128", true, "wide"]);
  equal(parametersGiven(space({definition: null}), new Map([["width", "64"]])).parameters, {width: "64"});
});

test("what does not fit is named with what would", () => {
  equal(given({lr: "0.2"}).wrong, 'lr: want a number from 0.00001 to 0.1, got "0.2"');
  equal(given({lr: "fast"}).wrong, 'lr: want a number from 0.00001 to 0.1, got "fast"');
  equal(given({layers: "2.5"}).wrong, 'layers: want a whole number from 1 to 8, got "2.5"');
  equal(given({lr: "Infinity"}).parameters, null);
  equal(wanted({name: "x", kind: "float", low: 0, high: null, log: false, choices: []}), "a number of at least 0");
});

test("a clone sets what was changed in its form, and nothing else", () => {
  const before = new Map([["lr", "0.01"], ["layers", "2"], ["width", "64"]]);
  const changed = (texts: Record<string, string>) => changesGiven(space(), before, new Map([...before, ...Object.entries(texts)]));
  equal(changed({lr: " 0.02 ", width: "128"}), {parameters: {lr: 0.02, width: "128"}, wrong: null});
  equal(changed({layers: ""}).wrong, "A clone has at least one parameter of its own: change one.");
  equal(changed({layers: "9"}).wrong, 'layers: want a whole number from 1 to 8, got "9"');
});

test("a form is filled with what the trial has, however numbers are written", () => {
  const [lr, , width] = space().parameters;
  equal([fieldText(lr!, 1e-5), fieldText(width!, 64), fieldText(width!, true), fieldText(lr!, null), fieldText(lr!, undefined)],
        ["0.00001", "64", "true", "", ""]);
  equal(fieldText({...width!, choices: ["1e-05", "0.1"]}, 0.00001), "1e-05");
  const small = space({definition: {search_space: {width: {_type: "choice", _value: [0.00001]}}}});
  equal(parametersGiven(small, new Map([["width", "1e-05"]])).parameters, {width: 0.00001});
});

test("a choice of which nothing would be seen stands in quotes", () => {
  equal(["", "  ", "a b", "\u202e"].map(choiceText), ['""', '"  "', "a b", "\\u202E"]);
});

test("of choices of the same number, the one of the same text is meant", () => {
  const width = {...space().parameters[2]!, choices: ["1.1", "1.10"]};
  const texts = space({parameters: [width], definition: {search_space: {width: {_type: "choice", _value: ["1.1", "1.10"]}}}});
  equal(width.choices.map((choice) => fieldText(width, choice)), ["1.1", "1.10"]);
  equal(width.choices.map((choice) => parametersGiven(texts, new Map([["width", choice]])).parameters), [{width: "1.1"}, {width: "1.10"}]);
});

test("a nested choice is of the kind that it is in the study's file, too", () => {
  const nested = {n: {_type: "choice", _value: [{_name: "A"}, {_name: "A/B", p: {_type: "choice", _value: [1, true]}}, {
    _name: "C", m: {_type: "choice", _value: [{_name: "D", p: {_type: "choice", _value: [2]}}]}}]}};
  const kind = {kind: "choice", low: null, high: null, log: false, choices: []};
  const study = space({parameters: ["n", "n/A/B/p", "n/C/m/D/p", "n/A/p"].map((name) => ({name, ...kind})), definition: {search_space: nested}});
  equal(parametersGiven(study, new Map([["n", "A/B"], ["n/A/B/p", "true"], ["n/C/m/D/p", "2"], ["n/A/p", "1"]])).parameters,
        {n: "A/B", "n/A/B/p": true, "n/C/m/D/p": 2, "n/A/p": "1"});
});

test("a choice is taken as it is, with its blanks, and one that is empty is not none", () => {
  const width = {...space().parameters[2]!, choices: ["", " a ", "b"]};
  const blanks = space({parameters: [width], definition: null});
  const changed = (from: string | null, to: string | null) =>
    changesGiven(blanks, new Map([["width", fieldText(width, from)]]), new Map([["width", fieldText(width, to)]])).parameters;
  equal([changed(" a ", " a "), changed("b", " a "), changed("b", ""), changed("", ""), changed(null, ""), changed("b", null)],
        [null, {width: " a "}, {width: ""}, null, {width: ""}, null]);
  equal(parametersGiven(blanks, new Map([["width", noneOf(width)]])).parameters, {});
});

test("a number that is written in another way is not changed", () => {
  const lr = space().parameters[0]!;
  equal(["0.10", "1e-1", " 0.1", "", "0.2", "0.1x"].map((text) => isChanged(lr, "0.1", text)), [false, false, false, false, true, true]);
  equal([isChanged(lr, "", "0"), isChanged(lr, undefined, "0")], [true, true]);
});

test("parameters without a space are an object", () => {
  equal([objectGiven("").parameters, objectGiven('{"a": [null]}').parameters], [{}, {a: [null]}]);
  equal([objectGiven("[1]"), objectGiven("{")].map(({parameters, wrong}) => [parameters, wrong?.startsWith("Parameters: want an object of JSON")]),
        [[null, true], [null, true]]);
});

const bars = (...of: [study: number, trial: number, node: number, slot: number, from: number, to: number | null][]) => ({
  now: 100, nodes: [], marks: [{at: 1, kind: "drain", trial_id: null, trial: null, study: null, node: 0, reason: ""}],
  studies: [{id: 7, name: "late"}, {id: 2, name: "early"}],
  spans: {study: of.map(([study]) => study), trial_id: of.map(([, trial]) => trial), trial: of.map(([, trial]) => trial), node: of.map(([,, node]) => node),
          slot: of.map(([,,, slot]) => slot), from: of.map(([,,,, from]) => from), to: of.map(([,,,,, to]) => to), count: of.map(() => 1)},
}) as unknown as Lanes;

test("lanes of studies are as many as they held slots at a time", () => {
  const grouped = byStudy(bars([0, 1, 0, 5, 10, 20], [1, 2, 0, 1, 10, 30], [0, 3, 1, 0, 20, 40], [0, 4, 1, 1, 30, null], [1, 2, 0, 2, 30, 50]));
  equal(grouped.nodes.map(({name, slots}) => [name, slots]), [["early", 1], ["late", 2]]);
  equal([grouped.spans.node, grouped.spans.slot], [[1, 0, 1, 1, 0], [0, 0, 0, 1, 0]]);
  equal(grouped.marks.map(({node}) => node), [null]);
});

test("a trial that goes on keeps its lane, whoever begins at that moment", () => {
  // Trial 1 is resized at 20, when trial 2 begins on the node that comes first.
  const grouped = byStudy(bars([0, 1, 1, 0, 10, 20], [0, 2, 0, 0, 20, 30], [0, 1, 1, 0, 20.01, 30], [0, 1, 1, 1, 20.02, 30]));
  equal(grouped.spans.slot, [0, 1, 0, 2]);
  equal(byStudy(bars()).nodes, []);
});

test("the best value goes up by steps, whatever is better", () => {
  const of = {at: [10, 20, 30], value: [4, 2, 1]};
  equal(bestLine(of, false, 50, 40, 30), "0,30 10,30 10,10 20,10 20,0 40,0");
  equal(bestLine({at: of.at, value: [1, 3, 4]}, true, 30, 40, 30), "0,30 20,30 20,10 40,10 40,0 40,0");
  equal([bestLine({at: [10], value: [4]}, true, 50, 40, 30), bestLine({at: [], value: []}, true, 50, 40, 30)], ["", ""]);
});

test("a best value that is newer than the answer is added once", () => {
  const of = {at: [10], value: [4]};
  equal(withNewest(of, 3, false, 20), {at: [10, 20], value: [4, 3]});
  equal([withNewest(of, 4, false, 20), withNewest(of, 3, true, 20), withNewest(of, null, true, 20)], [of, of, of]);
  equal(withNewest({at: [], value: []}, 3, true, 20), {at: [20], value: [3]});
});

const decided = (cursor: number, at: number, from_slots: number, to_slots: number, speedups: [number, number] | null = null) => ({
  cursor, at, from_slots, to_slots, figures: speedups && {speedup_before: speedups[0], speedup_after: speedups[1]}}) as unknown as Decision;

test("speedups are measured between decisions about slots", () => {
  const curve = {x: [10, 20, 30, 40, 50, 60, 70], goodput: [100, 100, 900, 150, 170, null, 85]};
  const of = (...decisions: Decision[]) => [...measuredSpeedups(decisions, curve)];
  // Newest first, as the service tells them. A decision that changes no slots ends nothing.
  equal(of(decided(4, 65, 2, 1, [1.8, 1]), decided(3, 45, 2, 2), decided(2, 25, 1, 2, [1, 1.8]), decided(1, 5, 0, 1)),
        [[2, 1.7], [4, 1.8 * 85 / 170]]);
  equal(of(decided(1, 5, 0, 1, [1, 1])), []);
  equal(of(decided(2, 100, 1, 2, [1, 1.8])), []);
  equal([...measuredSpeedups([decided(2, 25, 1, 2, [1, 1.8])], undefined)], []);
});
