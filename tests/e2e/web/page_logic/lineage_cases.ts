import {descentOf, nextLane} from "../../../../tuner/web/page/pages/study/lineage/lineage";
import {described} from "../../../../tuner/web/page/pages/study/lineage/lineage_panel";
import {linksOf} from "../../../../tuner/web/page/pages/study/curve_links";
import {TrialsStore} from "../../../../tuner/web/page/table/trials_store";
import {equal, test} from "./cases";

/** Trials 0 to 6: 2 and 4 are clones of 0, 5 is one of 4, 6 is one of 1; 3 has none. */
export function population(): TrialsStore {
  const store = new TrialsStore();
  const columns = {id: [16, 15, 14, 13, 12, 11, 10], number: [6, 5, 4, 3, 2, 1, 0], state: [0, 1, 1, 2, 1, 1, 2], value: [null, 0.2, 0.3, 0.9, 0.6, 0.1, 0.5],
                   step: [null, 30, 20, 10, 25, 12, 15], parent: [1, 4, 0, null, 0, null, null], parent_step: [null, 20, 5, null, 10, null, null],
                   "p:lr": [0.2, 0.3, 0.2, 0.1, 0.1, 0.1, 0.1], "p:rule": [0, 0, 0, 0, 1, 0, 0]};
  store.merge({columns, words: {state: ["waiting", "complete", "pruned"], "p:rule": ["a", "b"]}});
  return store;
}

const shown = (store: TrialsStore, direction: "minimize" | "maximize", most = 10) =>
  descentOf(store, direction, most).members.map(({trial, parentLane}) => [trial, parentLane]);

test("lines are in the order of their best, and within them go from parents to clones", () => {
  equal(shown(population(), "minimize"), [[1, null], [6, 0], [0, null], [4, 2], [5, 3], [2, 2]]);
  equal(shown(population(), "maximize"), [[0, null], [4, 0], [5, 1], [2, 0], [1, null], [6, 4]]);
});

test("a trial that breaks a constraint makes no line the first", () => {
  const store = population();
  store.merge({columns: {id: [11], infeasible: [0]}, words: {infeasible: ["yes"]}});
  equal(shown(store, "minimize")[0], [0, null]);
});

test("what is too much is left out, and said", () => {
  const {members, all} = descentOf(population(), "minimize", 3);
  equal([members.map(({trial}) => trial), all], [[1, 6, 0], 6]);
});

test("a clone is told with what it has otherwise, from the step of its checkpoint on", () => {
  const {members} = descentOf(population(), "minimize", 10);
  equal(members.map(({set}) => set), [[], [["lr", 0.2]], [], [["lr", 0.2]], [["lr", 0.3]], [["rule", "b"]]]);
  equal(members.map(({from, to}) => [from, to]), [[0, 12], [0, 0], [0, 15], [5, 20], [20, 30], [10, 25]]);
  equal(members.map(({founder}) => founder), [1, 1, 0, 0, 0, 0]);
});

const curve = (id: number, x: number[], y: number[]) => ({id, trial: id - 10, state: "complete", infeasible: false, points: x.length,
                                                              x: Float64Array.from(x), y: Float64Array.from(y), smooth: Float64Array.from(y)});

test("a clone's curve leaves its parent's at the step of the checkpoint", () => {
  const all = [curve(10, [1, 5, 8], [3, 2, 1]), curve(14, [6, 7], [1.5, 1]), curve(12, [11], [0.5]), curve(15, [21], [9])];
  equal(linksOf(all, population()), [{id: 14, from: [5, 2], to: [6, 1.5]}, {id: 12, from: [8, 1], to: [11, 0.5]}, {id: 15, from: [7, 1], to: [21, 9]}]);
  equal(linksOf([curve(10, [6], [1]), curve(14, [6], [1])], population()), []);
  equal(linksOf([curve(14, [6], [1])], population()), []);
});

test("a clone that waits for its checkpoint is told as such, and is joined to nothing", () => {
  const {members} = descentOf(population(), "minimize", 10);
  equal(members.map(({lacks}) => lacks), [false, true, false, false, false, false]);
  equal(members.slice(1, 4).map((one) => described(one).split("\n")[0]),
        ["trial 6, waiting: clone of trial 1 that waits for its checkpoint, with lr 0.2", "trial 0, pruned: began afresh",
         "trial 4, complete: clone of trial 0 at step 5, with lr 0.2"]);
});

test("a clone that has ended without its checkpoint waits for nothing", () => {
  const store = population();
  store.merge({columns: {id: [16], state: [0]}, words: {state: ["pruned"]}});
  const clone = descentOf(store, "minimize", 10).members.find(({trial}) => trial === 6)!;
  equal([clone.lacks, described(clone).split("\n")[0]], [true, "trial 6, pruned: clone of trial 1 that ended without its checkpoint, with lr 0.2"]);
});

test("a study without clones has no lines", () => {
  const store = new TrialsStore();
  store.merge({columns: {id: [1], number: [0]}, words: {}});
  equal(descentOf(store, "minimize", 10), {members: [], all: 0});
});

test("a clone whose parent has not been read yet is in no line", () => {
  const store = new TrialsStore();
  store.merge({columns: {id: [9], number: [8], parent: [2], parent_step: [3]}, words: {}});
  equal(descentOf(store, "minimize", 10).members.map(({trial, parentLane, set}) => [trial, parentLane, set]), [[8, null, []]]);
});

test("a trial may have more clones than a function has arguments", () => {
  const store = new TrialsStore();
  const number = Array.from({length: 200_000}, (_, at) => at);
  store.merge({columns: {id: number.map((at) => at + 1), number, parent: number.map((at) => (at === 0 ? null : 0)), parent_step: number,
                         value: number, "p:lr": number}, words: {}});
  const {members, all} = descentOf(store, "minimize", 2);
  equal([members.map(({trial, set}) => [trial, set]), all], [[[0, []], [1, [["lr", 1]]]], 200_000]);
});

test("keys go along the line", () => {
  const {members} = descentOf(population(), "minimize", 10);
  equal([nextLane(members, null, "down"), nextLane(members, 2, "right"), nextLane(members, 4, "left"), nextLane(members, 5, "right"),
         nextLane(members, 5, "down"), nextLane(members, 0, "up"), nextLane(members, 1, "end"), nextLane([], null, "down")], [0, 3, 3, 5, 5, 0, 5, null]);
});
