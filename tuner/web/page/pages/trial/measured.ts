// What became of the speedups that were foretold for a trial: its goodput between two decisions about its slots. Pure.

import type {Curve, Decision} from "../../contract";
import {numberOf} from "../../table/trials_store";

/**
 * By cursor: the speedup after each decision, measured, in the unit of the one that is foretold. It is the speedup before times
 * what the middle goodput since has grown by. Decisions without both are left out: nothing was foretold, or nothing was reported
 * before or since.
 */
export function measuredSpeedups(decisions: readonly Decision[], curve: Pick<Curve, "x" | "goodput"> | undefined): Map<string | number, number> {
  const measured = new Map<string | number, number>();
  const changes = decisions.filter((one) => one.from_slots !== one.to_slots).sort((a, b) => a.at - b.at);
  changes.forEach((decision, i) => {
    const before = middleGoodput(curve, changes[i - 1]?.at ?? -Infinity, decision.at);
    const since = middleGoodput(curve, decision.at, changes[i + 1]?.at ?? Infinity);
    const from = decision.figures?.speedup_before ?? null;
    if (from !== null && decision.figures?.speedup_after !== null && before > 0 && since > 0) {
      measured.set(decision.cursor, (from * since) / before);
    }
  });
  return measured;
}

/** The median: one report that a pause has delayed counts for no more than another. NaN: there is none. */
function middleGoodput(curve: Pick<Curve, "x" | "goodput"> | undefined, from: number, to: number): number {
  const told: number[] = [];
  curve?.x.forEach((at, i) => {
    const goodput = numberOf(curve.goodput?.[i]);
    if (at > from && at <= to && goodput > 0) told.push(goodput);
  });
  told.sort((a, b) => a - b);
  const half = Math.floor(told.length / 2);
  return told.length % 2 === 1 ? told[half]! : (told[half - 1]! + told[half]!) / 2;
}
