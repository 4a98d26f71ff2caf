import type {Curves, Decisions, TrialAnswer, TrialColumns} from "../../../../tuner/web/page/contract";
import {answerOf, unpacked} from "../../../../tuner/web/page/record/answers";
import type {StudyRecord} from "../../../../tuner/web/page/record/contract";
import {decimate, scaleOf} from "../../../../tuner/web/page/record/decimate";
import {equal, test} from "./cases";

const heading = {version: 1, revision: 0, incarnation: ""};

/** Four trials of a study that minimizes; the third has told nothing. */
const record = {
  version: 1, decided: 3, overview: {now: 50}, study: {id: 7, metric: "loss", direction: "minimize", directions: ["minimize", "maximize"]},
  trials: {...heading, from: 0, rows: 4, total: 4, columns: {id: [14, 13, 12, 11], number: [3, 2, 1, 0], value: [0.5, null, 0.1, 0.3],
                                                                        "values:1": [1, null, 2, 4], state: [0, 0, 0, 0]},
           words: {state: ["complete"]}},
  lanes: {now: 50}, analyses: {pareto: {complete: 2, trials: []}},
  decisions: {...heading, next: null, decisions: [
    {cursor: "c", trial_id: 12, kind: "grow"}, {cursor: "b", trial_id: 11, kind: "grow"}, {cursor: "a", trial_id: 11, kind: "start"}]},
  curves: [
    {trial_id: 11, trial: 0, state: "complete", points: 3, step: [1, 1], at_ms: [1000, 500, 1500], slot_ms: [0, 2000], y: [0.5, null, 0.3],
     batch_size: [64, 64, 128]},
    {trial_id: 12, trial: 1, state: "complete", points: 900, step: [2, 3, 5], at_ms: [0, 1], slot_ms: [1], y: [0.2, 0.1, 0.4],
     progress: [null, 1.5, 2.5]},
  ],
  facts: [{id: 11, number: 0}, {id: 12, number: 1}],
} as unknown as StudyRecord;

const ask = <T>(path: string) => answerOf(record, path) as T;

test("steps of a record are unpacked, also where all are alike", () => {
  equal(unpacked([5], 1), [5]);
  equal(unpacked([5, 2], 4), [5, 7, 9, 11]);
  equal(unpacked([5, 2, 0, -1], 4), [5, 7, 7, 6]);
});

test("a record answers only about its study", () => {
  equal(ask("/api/view/studies/8"), undefined);
  equal(ask("/api/view/studies/8/trials"), undefined);
  equal(ask("/api/view/trials/99"), undefined);
  equal(ask("/api/trials/11/output"), undefined);
  equal(ask("/api/view/studies/7"), record.study);
  equal(ask("/api/view/studies/7/analysis?what=pareto"), record.analyses["pareto"]);
  equal(ask("/api/view/studies/7/analysis?what=else"), undefined);
  equal(ask("/api/view/lanes?from=3"), record.lanes);
});

test("trials of a record come in slices", () => {
  const slice = ask<TrialColumns>("/api/view/studies/7/trials?from=1&rows=2");
  equal([slice.from, slice.rows, slice.total, slice.columns["number"]], [1, 2, 4, [2, 1]]);
  equal(ask<TrialColumns>("/api/view/studies/7/trials?from=9&rows=2").rows, 0);
});

test("decisions of a record are paged and filtered", () => {
  const cursors = (of: Decisions) => [of.decisions.map((one) => one.cursor).join(""), of.next];
  equal(cursors(ask("/api/view/decisions?study=7&limit=2")), ["cb", "b"]);
  equal(cursors(ask("/api/view/decisions?study=7&limit=2&before=b")), ["a", null]);
  equal(cursors(ask("/api/view/decisions?trial=11")), ["ba", null]);
  equal(cursors(ask("/api/view/decisions?kind=grow&limit=1")), ["c", "c"]);
  equal(ask<TrialAnswer>("/api/view/trials/11").decisions.length, 2);
});

test("clones of a trial are found in the table of a record", () => {
  const columns = {...record.trials.columns, parent: [0, null, 0, null], parent_step: [null, null, 5, null]};
  const told = answerOf({...record, trials: {...record.trials, columns}}, "/api/view/trials/11") as TrialAnswer;
  equal(told.clones, [{trial_id: 12, trial: 1, state: "complete", step: 5}, {trial_id: 14, trial: 3, state: "complete", step: null}]);
  equal(ask<TrialAnswer>("/api/view/trials/11").clones, []);
});

test("curves of a record are those of the best, on the axis that is asked for", () => {
  const of = (query: string) => ask<Curves>(`/api/view/studies/7/curves?${query}`).curves;
  equal(of("best=1").map((one) => one.trial_id), [12]);
  equal(of("").map((one) => one.trial_id), [12, 11]);
  const others = {...record, other_curves: [[{trial_id: 14, trial: 3, state: "complete", points: 1, step: [4], at_ms: [1], slot_ms: [0], y: [9]}]]};
  const second = answerOf(others as StudyRecord, "/api/view/studies/7/curves?objective=1") as Curves;
  equal(second.curves.map((one) => [one.trial_id, one.x, one.y]), [[14, [4], [9]]]);
  const told = {...record.trials, columns: {...record.trials.columns, infeasible: [null, null, 1, 0]}, words: {...record.trials.words, infeasible: ["no", "yes"]}};
  const kept = answerOf({...record, trials: told}, "/api/view/studies/7/curves") as Curves;
  equal(kept.curves.map((one) => one.trial_id), [11, 12]);
  const [first] = of("trials=11&x=time");
  equal([first!.x, first!.y, first!.batch_size, first!.promise, first!.points], [[1, 1.5, 3], [0.5, null, 0.3], [64, 64, 128], null, 3]);
  equal(of("trials=11&x=slot_seconds")[0]!.x, [0, 2, 4]);
  equal(of("trials=11&x=slot_seconds&xlog=1")[0]!.x, [2, 4]);
  equal(of("trials=12&x=progress").map(({x, y}) => [x, y]), [[[1.5, 2.5], [0.1, 0.4]]]);
  equal(of("trials=12")[0]!.x, [2, 5, 10]);
});

test("a thinned curve keeps the peaks and the gaps of each column, and what is next to the axis", () => {
  const x = Array.from({length: 100}, (_, at) => at);
  const y = x.map((at) => (at === 57 ? 9 : at === 23 ? NaN : at % 3));
  const kept = decimate(x, y, scaleOf(0, 99, false), 5);
  equal(kept.includes(57) && kept.includes(23) && kept[0] === 0 && kept[kept.length - 1] === 99, true);
  equal(kept.length <= 5 * 6, true);
  equal(decimate(x, y, scaleOf(40, 42, false), 10), [39, 40, 41, 42, 43]);
  equal(decimate([1, 10, 100], [1, 2, 3], scaleOf(1, 100, true), 2), [0, 1, 2]);
  equal(decimate([3], [1], scaleOf(3, 3, false), 4), [0]);
});
