// Clones and those that they come from, as lines of descent with a lane for each trial. Pure.

import type {Direction} from "../../../contract";
import type {TrialsStore} from "../../../table/trials_store";
import {isOpen} from "../open_trials";

export interface Member {
  id: number;
  trial: number;
  state: string;
  /** Of the trial with whose checkpoint it began; null: it began afresh. */
  parent: number | null;
  /** The lane of that one; null: it is not shown, or there is none. */
  parentLane: number | null;
  /** Of the first trial of its line. */
  founder: number;
  /** It is a clone that has not got its parent's checkpoint, and may have ended without it. */
  lacks: boolean;
  /** The step at which it began; of one that has no checkpoint, 0. */
  from: number;
  /** The last step that it told. */
  to: number;
  value: number;
  infeasible: boolean;
  /** Its own parameters where its parent has others. */
  set: [name: string, value: number | string][];
}

/** Before it is known which are shown: of very many, few are. */
type Found = Omit<Member, "parentLane" | "set">;

export interface Descent {
  /** By lines, and in each from a parent to its clones, the earliest first. */
  members: Member[];
  /** So many trials are of lines that have clones. */
  all: number;
}

const NOBODY: Descent = {members: [], all: 0};

/** Lines with the best trials come first, where not all can be shown. */
export function descentOf(trials: TrialsStore, direction: Direction, most: number): Descent {
  if (trials.kindOf("parent") === null) return NOBODY;
  const rows = new Map<number, number>();
  for (let row = 0; row < trials.rows; ++row) rows.set(trials.number("number", row), row);
  const clones = clonesByParent(trials);
  if (clones.size === 0) return NOBODY;
  const founders = [...clones.keys()].filter((number) => Number.isNaN(parentOf(trials, rows, number)));
  const lines = founders.map((founder) => lineOf(trials, rows, clones, founder));
  const sign = direction === "maximize" ? -1 : 1;
  const best = new Map(lines.map((line) => [line, line.reduce((least, one) => Math.min(least, rankOf(one, sign)), Infinity)]));
  lines.sort((a, b) => best.get(a)! - best.get(b)! || a[0]!.trial - b[0]!.trial);
  const members = lines.flat();
  return {members: shown(trials, rows, members.slice(0, most)), all: members.length};
}

function clonesByParent(trials: TrialsStore): Map<number, number[]> {
  const clones = new Map<number, number[]>();
  for (let row = 0; row < trials.rows; ++row) {
    const parent = trials.number("parent", row);
    if (Number.isNaN(parent)) continue;
    const own = clones.get(parent);
    if (own === undefined) clones.set(parent, [trials.number("number", row)]);
    else own.push(trials.number("number", row));
  }
  return clones;
}

/** NaN of one that began afresh, and of one whose row has not been read yet. */
function parentOf(trials: TrialsStore, rows: ReadonlyMap<number, number>, number: number): number {
  const row = rows.get(number);
  return row === undefined ? NaN : trials.number("parent", row);
}

function lineOf(trials: TrialsStore, rows: ReadonlyMap<number, number>, clones: ReadonlyMap<number, number[]>, founder: number): Found[] {
  const members: Found[] = [];
  const waiting = [founder];
  for (let number = waiting.pop(); number !== undefined; number = waiting.pop()) {
    const row = rows.get(number);
    if (row !== undefined) members.push(memberOf(trials, row, founder));
    const step = (clone: number) => trials.number("parent_step", rows.get(clone) ?? -1) || 0;
    // The last is the next.
    for (const clone of [...clones.get(number) ?? []].sort((a, b) => step(b) - step(a) || b - a)) waiting.push(clone);
  }
  return members;
}

function memberOf(trials: TrialsStore, row: number, founder: number): Found {
  const parent = trials.number("parent", row);
  const from = trials.number("parent_step", row) || 0;
  return {
    id: trials.number("id", row), trial: trials.number("number", row), state: trials.word("state", row) ?? "",
    parent: Number.isNaN(parent) ? null : parent, founder, lacks: !Number.isNaN(parent) && Number.isNaN(trials.number("parent_step", row)),
    from, to: Math.max(from, trials.number("step", row) || 0), value: trials.number("value", row),
    infeasible: trials.word("infeasible", row) === "yes",
  };
}

/** What a clone has otherwise than its parent. */
function setBy(trials: TrialsStore, row: number | undefined, parent: number | undefined): Member["set"] {
  if (row === undefined || parent === undefined) return [];
  const set: Member["set"] = [];
  for (const name of trials.names()) {
    if (!name.startsWith("p:")) continue;
    const value = trials.cell(name, row);
    if (value !== null && value !== trials.cell(name, parent)) set.push([name.slice(2), value]);
  }
  return set;
}

function rankOf(member: Found, sign: number): number {
  return Number.isNaN(member.value) || member.infeasible ? Infinity : sign * member.value;
}

function shown(trials: TrialsStore, rows: ReadonlyMap<number, number>, members: readonly Found[]): Member[] {
  const lanes = new Map(members.map((one, lane) => [one.trial, lane]));
  return members.map((one) => ({
    ...one, parentLane: one.parent === null ? null : lanes.get(one.parent) ?? null,
    set: one.parent === null ? [] : setBy(trials, rows.get(one.trial), rows.get(one.parent)),
  }));
}

/** What is said of a clone in this state that has not got its parent's checkpoint. */
export function withoutCheckpoint(state: string): string {
  return isOpen(state) ? "waits for its checkpoint" : "ended without its checkpoint";
}

/** The next lane by the keyboard: left to the parent, right to the first clone, up and down by lanes. */
export function nextLane(members: readonly Member[], lane: number | null, move: string): number | null {
  if (members.length === 0) return null;
  const last = members.length - 1;
  if (lane === null || move === "home") return 0;
  if (move === "end") return last;
  if (move === "left") return members[lane]?.parentLane ?? lane;
  if (move === "right") {
    const clone = members.findIndex((one) => one.parentLane === lane);
    return clone < 0 ? lane : clone;
  }
  return Math.max(0, Math.min(last, lane + (move === "up" ? -1 : 1)));
}
