import {columnsOf, formatColumns, labelOf, objectiveNames, moved, parseColumns, toggled, usualColumns} from "../../../../tuner/web/page/table/columns";
import {type Condition, formatCondition, formatConditions, parseCondition, parseConditions} from "../../../../tuner/web/page/table/conditions";
import {csv, csvCell} from "../../../../tuner/web/page/table/csv";
import {keptOf} from "../../../../tuner/web/page/table/kept";
import {ROW, anchored, elementsOf, rowsWindow, scrolledTo} from "../../../../tuner/web/page/table/rows_window";
import {ShownRows} from "../../../../tuner/web/page/table/shown_rows";
import {type Sort, TrialsStore} from "../../../../tuner/web/page/table/trials_store";
import {formatSort, nextSort, parseIds, parseSort} from "../../../../tuner/web/page/table/trials_view";
import {check, equal, test} from "./cases";

const HOSTILE = ["a b", "a: b", "a; b", 'say "hi"', "none", "1..2", "~", "x\\", "é, ü", "</script>", "p:", "-", "\u202e", "\n"];

test("conditions are written as the address and the chips show them", () => {
  equal(formatCondition({kind: "range", column: "p:lr", low: 1e-4, high: 1e-2}), "p:lr 1e-4..0.01");
  equal(formatCondition({kind: "words", column: "state", words: ["running", "complete"]}), "state: running, complete");
  equal(formatCondition({kind: "words", column: "reason", words: [null, "none"]}), 'reason: none, "none"');
  equal(formatCondition({kind: "contains", column: "reason", text: "out of memory"}), "reason ~ out of memory");
  equal(formatCondition({kind: "range", column: "value", low: -Infinity, high: 0.5}), "value ..0.5");
});

test("conditions are read as people write them", () => {
  equal(parseCondition("p:lr 1e-4..1e-2"), {condition: {kind: "range", column: "p:lr", low: 1e-4, high: 1e-2}});
  equal(parseCondition("state:running"), {condition: {kind: "words", column: "state", words: ["running"]}});
  equal(parseCondition("state: running, complete"), {condition: {kind: "words", column: "state", words: ["running", "complete"]}});
  equal(parseCondition("value >= 0.5"), {condition: {kind: "range", column: "value", low: 0.5, high: Infinity}});
  equal(parseCondition("p:layers 3"), {condition: {kind: "range", column: "p:layers", low: 3, high: 3}});
  equal(parseCondition("reason ~ Memory"), {condition: {kind: "contains", column: "reason", text: "Memory"}});
});

test("what is no condition is told what would be right", () => {
  equal(parseCondition("value 3..1"), {error: "value: 3 is more than 1"});
  equal(parseCondition("value abc"), {error: "value needs a range such as 1e-4..1e-2, words such as value: a, b, or value ~ text"});
  equal(parseCondition("state:"), {error: "state: needs at least one word"});
  equal(parseCondition("reason ~"), {error: "reason ~ needs a text"});
  equal(parseCondition('state: "open'), {error: 'state: a quote is not closed in "open'});
  check("error" in parseCondition("!"), "a sign is no column");
});

test("conditions survive the address, whatever names and words are", () => {
  for (const name of HOSTILE) {
    const conditions: Condition[] = [
      {kind: "words", column: `p:${name}`, words: [name, null, "plain"]},
      {kind: "range", column: `u:${name}`, low: -1.5e-9, high: Infinity},
      {kind: "contains", column: name, text: name.trim() === "" ? "x" : name.trim()},
    ];
    const address = new URLSearchParams(new URLSearchParams({f: formatConditions(conditions)}).toString()).get("f") ?? "";
    equal(parseConditions(address), {conditions, errors: []});
  }
});

test("one bad condition of an address leaves the others", () => {
  const {conditions, errors} = parseConditions("state: running; value x; p:lr ..1");
  equal(conditions.length, 2);
  equal(errors.length, 1);
});

test("cells that a spreadsheet would run are made text", () => {
  equal(["=1+1", "+cmd", "-2+3", "@a", "\tx", "-1.5e-3", "+5", "a"].map(csvCell),
        ["'=1+1", "'+cmd", "'-2+3", "'@a", "\"'\tx\"".replace(/"/g, ""), "-1.5e-3", "+5", "a"]);
});

test("cells with commas, quotes and line ends are quoted", () => {
  equal(csv(["a", "b,c"], [["x\ny", 'q"q'], [null, 1.5]]), 'a,"b,c"\r\n"x\ny","q""q"\r\n,1.5\r\n');
});

function filled(): TrialsStore {
  const store = new TrialsStore();
  store.merge({
    columns: {id: [13, 12, 11], number: [2, 1, 0], state: [0, 1, 1], value: [null, "NaN", 0.5], "p:lr": [1e-3, 1e-2, 1e-1]},
    words: {state: ["running", "complete"]},
  });
  return store;
}

test("a later answer overwrites rows and adds new ones", () => {
  const store = filled();
  store.merge({columns: {id: [13, 14], number: [2, 3], state: [1, 0], value: [0.7, null]}, words: {state: ["waiting", "complete"]}});
  equal(store.rows, 4);
  const row = store.rowOf(13) ?? -1;
  equal([store.word("state", row), store.cell("value", row), store.cell("p:lr", row)], ["complete", 0.7, 1e-3]);
  equal(store.word("state", store.rowOf(14) ?? -1), "waiting");
  equal(store.cell("p:lr", store.rowOf(14) ?? -1), null);
});

test("rows that outgrow the columns keep what is known", () => {
  const store = new TrialsStore();
  for (let first = 0; first < 3000; first += 500) {
    const ids = Array.from({length: 500}, (_, i) => first + i);
    store.merge({columns: {id: ids, number: ids, state: ids.map((id) => id % 2)}, words: {state: ["a", "b"]}});
  }
  store.merge({columns: {id: [3000], number: [3000], "u:late": [0]}, words: {"u:late": ["x"]}});
  equal([store.rows, store.number("number", 2999), store.word("state", 2999), store.word("u:late", 2999), store.word("u:late", 3000)],
        [3001, 2999, "b", null, "x"]);
});

test("a choice of numbers that gets a word becomes words", () => {
  const store = new TrialsStore();
  store.merge({columns: {id: [1], number: [0], "p:c": [3]}, words: {}});
  store.merge({columns: {id: [2], number: [1], "p:c": [0]}, words: {"p:c": ["auto"]}});
  equal([store.cell("p:c", 0), store.cell("p:c", 1)], ["3", "auto"]);
  store.merge({columns: {id: [3], number: [2], "p:c": [7]}, words: {}});
  equal(store.cell("p:c", 2), "7");
  equal([...store.filter([{kind: "range", column: "p:c", low: 5, high: 8}])], [2]);
});

test("filters keep rows that meet all of them", () => {
  const store = filled();
  const numbers = (text: string) => [...store.filter(parseConditions(text).conditions)].map((row) => store.number("number", row));
  equal(numbers("state: complete"), [1, 0]);
  equal(numbers("state: complete; p:lr 0.05.."), [0]);
  equal(numbers("state: none"), []);
  equal(numbers("state ~ RUN"), [2]);
  equal(numbers("value 0..1"), [0]);
  equal(numbers("p:gone 0..1"), []);
  equal(numbers(""), [2, 1, 0]);
});

test("what is not known is last in both directions", () => {
  const store = filled();
  const sorted = (descending: boolean) =>
    [...store.sorted({column: "value", descending})].map((row) => store.number("number", row));
  equal(sorted(false), [0, 2, 1]);
  equal(sorted(true), [0, 2, 1]);
  equal([...store.sorted({column: "p:lr", descending: true})].map((row) => store.number("p:lr", row)), [0.1, 0.01, 0.001]);
});

test("a table's rows are the same whether they are sorted or filtered first", () => {
  const store = filled();
  const shown = new ShownRows(store);
  const byRate: Sort = {column: "p:lr", descending: true};
  const numbers = (text: string, sort: Sort) =>
    [...shown.of(parseConditions(text).conditions, sort)].map((row) => store.number("number", row));
  equal(numbers("state: complete", byRate), [0, 1]);
  equal(numbers("", byRate), [0, 1, 2]);
  equal(numbers("p:lr ..0.05", byRate), [1, 2]);
  equal(numbers("p:lr ..0.05", {column: "number", descending: true}), [2, 1]);
  store.mergeLive({trial_id: [13], "p:lr": [0.2]});
  equal(numbers("p:lr 0.05..", byRate), [2, 0]);
  equal(numbers("p:lr 0.05..", byRate), [2, 0]);
  equal(numbers("", byRate), [2, 0, 1]);
});

test("words are sorted as words, numbers among them as numbers", () => {
  const store = new TrialsStore();
  store.merge({columns: {id: [1, 2, 3, 4], number: [1, 2, 3, 4], c: [0, 1, 2, null]}, words: {c: ["10", "9", "a"]}});
  equal([...store.sorted({column: "c", descending: false})].map((row) => store.word("c", row)), ["9", "10", "a", null]);
});

test("figures of running trials change their cells alone", () => {
  const store = filled();
  const before = store.version;
  store.mergeLive({trial_id: [13, 99], value: [0.9, 1], "p:none": [1, 1]});
  equal([store.cell("value", store.rowOf(13) ?? -1), store.rows, store.version > before], [0.9, 3, true]);
  const after = store.version;
  store.mergeLive({trial_id: [13], value: [0.9]});
  equal(store.version, after);
});

test("those that keep to what they have to are counted, once they have told all of it", () => {
  const store = filled();
  equal(keptOf(store), null);
  store.merge({columns: {id: [13, 12, 11], infeasible: [null, 1, 0]}, words: {infeasible: ["no", "yes"]}});
  equal(keptOf(store), {keep: 1, breaks: 1});
});

test("columns survive the address", () => {
  const names = ["state", "p:a,b", "p:100%", "u:%2C"];
  equal(parseColumns(new URLSearchParams(new URLSearchParams({cols: formatColumns(names)}).toString()).get("cols") ?? ""), names);
});

test("the usual columns suit the study", () => {
  const parameters = [{name: "lr", kind: "float" as const, low: 0, high: 1, log: false, choices: []}];
  equal(usualColumns("ask", parameters, 2), ["state", "value", "values:1", "step", "p:lr", "reason"]);
  equal(usualColumns("ask", parameters, 2, ["parent", "infeasible"]), ["state", "value", "values:1", "infeasible", "parent", "step", "p:lr", "reason"]);
  check(usualColumns("pool", parameters, 1).includes("promise"), "trials of the pool have a promise");
});

test("heads say what stands below them", () => {
  equal([labelOf("value", "loss"), labelOf("p:lr", "loss"), labelOf("batch_size", "loss"), labelOf("u:p:x", "")], ["loss", "lr", "batch", "p:x"]);
  equal([labelOf("value", "loss", ["value 1", "value 2"]), labelOf("values:1", "loss", ["value 1", "value 2"])], ["value 1", "value 2"]);
  const two = {metric: "loss", metrics: ["loss", "latency_ms"], directions: ["minimize" as const, "minimize" as const]};
  equal(objectiveNames(two), ["loss", "latency_ms"]);
  equal(labelOf("values:1", "loss", objectiveNames(two)), "latency_ms");
  equal(objectiveNames({...two, metrics: []}), ["value 1", "value 2"]);
});

test("columns are chosen and moved", () => {
  equal(columnsOf("value,gone,state", ["state", "value"], ["id", "number", "state", "value", "u:x"]),
        {all: ["state", "value", "u:x"], shown: ["value", "state"]});
  equal(moved(["a", "b", "c"], "b", -1), ["b", "a", "c"]);
  equal(moved(["a", "b"], "b", 1), ["a", "b"]);
  equal(toggled(["a", "b"], "a"), ["b"]);
  equal(toggled(["a"], "b"), ["a", "b"]);
});

test("the order survives the address, and the usual one is not in it", () => {
  equal(parseSort(null), {column: "number", descending: true});
  equal(formatSort({column: "number", descending: true}), null);
  equal(parseSort(formatSort({column: "p:-x", descending: true})), {column: "p:-x", descending: true});
});

test("the first click on a value's head puts the best on top", () => {
  equal(nextSort(parseSort(null), "value", true, "minimize"), {column: "value", descending: false});
  equal(nextSort(parseSort(null), "value", true, "maximize"), {column: "value", descending: true});
  equal(nextSort(parseSort("value"), "value", true, "minimize"), {column: "value", descending: true});
});

test("only ids are taken for ids", () => {
  equal(parseIds("7,9,x,,7,-1,1e3"), [7, 9]);
  equal(parseIds(null), []);
});

test("rows in sight are drawn, and a few more", () => {
  const {from, to} = rowsWindow(100 * ROW, 20 * ROW, 100000);
  check(from <= 100 && from > 80 && to >= 120 && to < 140, `${from} to ${to}`);
  equal(rowsWindow(0, 600, 3), {from: 0, to: 3});
  equal(rowsWindow(9999, 600, 0), {from: 0, to: 0});
});

test("rows that come in above leave in place what is read", () => {
  equal(anchored(10 * ROW, 10, 15), 15 * ROW);
  equal(anchored(0, 0, 5), 0);
  equal(anchored(7 * ROW, 7, -1), 7 * ROW);
});

test("rows that come take the elements of those that have gone, in their order", () => {
  const first = elementsOf([9, 8, 7], new Map(), null);
  equal([...first.values()], [0, 1, 2]);
  const second = elementsOf([11, 9, 10, 6], first, null);
  equal([...second], [[11, 1], [9, 0], [10, 2], [6, 3]]);
  equal([...elementsOf([9], second, null)], [[9, 0]]);
  equal(elementsOf([4, 5], second, 9).get(4), 1);
  equal([...elementsOf([4, 5, 3, 2], second, 9).values()].includes(0), false);
});

test("the current row is scrolled into sight and no further", () => {
  equal(scrolledTo(5, 0, 10 * ROW), 0);
  equal(scrolledTo(12, 0, 10 * ROW), 3 * ROW);
  equal(scrolledTo(2, 5 * ROW, 10 * ROW), 2 * ROW);
});
