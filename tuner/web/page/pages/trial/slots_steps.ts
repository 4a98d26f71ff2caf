// How many slots a trial held at each time. Pure.

import type {TrialSpan} from "../../contract";

export interface SlotSteps {
  at: number[];
  /** From that time on. */
  slots: number[];
}

/** A step at each time at which the number changes. Spans may overlap: a slot may have one of its own. */
export function slotSteps(spans: readonly TrialSpan[], now: number): SlotSteps {
  const changes = spans.flatMap((span) => [[span.from, span.slots.length], [span.to ?? now, -span.slots.length]] as const)
    .sort((a, b) => a[0] - b[0]);
  const steps: SlotSteps = {at: [], slots: []};
  let held = 0;
  changes.forEach(([at, by], i) => {
    held += by;
    // Several changes of one time are one step.
    if (changes[i + 1]?.[0] === at) return;
    if (steps.slots[steps.slots.length - 1] === held) return;
    steps.at.push(at);
    steps.slots.push(held);
  });
  return steps;
}

/** Which slots it held at a time, as text. */
export function slotsAt(spans: readonly TrialSpan[], at: number, now: number): string {
  const held = spans.filter((span) => span.from <= at && at < (span.to ?? now + 1)).flatMap(({slots}) => slots);
  const byNode = new Map<string, number[]>();
  for (const {node, slot} of held) byNode.set(node, [...(byNode.get(node) ?? []), slot]);
  return [...byNode].map(([node, slots]) => `${node}: ${slots.sort((a, b) => a - b).join(", ")}`).join(" · ");
}
