// A study in a few figures.

import type {StudyRow} from "../../contract";
import {count, duration, money, number, percent} from "../../format";
import {Link} from "../../parts/link";
import {record} from "../../record/record";
import {addressOf} from "../../url";

export function Tiles({row, poolSlots, onCopyBest}: {row: StudyRow; poolSlots: number; onCopyBest: (() => void) | null}) {
  const {trials} = row;
  const done = trials.complete + trials.pruned + trials.failed;
  const all = done + trials.waiting + trials.running + trials.paused;
  const rest = [
    [trials.running, "running"], [trials.waiting, "waiting"], [trials.paused, "paused"], [trials.pruned, "pruned"],
    [trials.failed, "failed"],
  ].filter(([n]) => n !== 0).map(([n, what]) => `${count(n as number)} ${what}`);
  return (
    <div className="tiles">
      <BestTile row={row} onCopy={onCopyBest} />
      <div className="tile">
        <b>{count(all)}{row.total === null ? "" : ` of ${count(row.total)}`}</b>
        <span>trials{rest.length > 0 ? `: ${rest.join(", ")}` : ""}</span>
      </div>
      {row.kind !== "ask" && (
        <>
          {record === null && (
            <div className="tile">
              <b>{count(row.slots)}</b>
              <span>{row.slots === 1 ? "slot" : "slots"}{poolSlots > 0 ? `, ${percent(row.slots / poolSlots)} of the pool` : ""}</span>
            </div>
          )}
          <div className="tile"><b>{duration(row.slot_seconds)}</b><span>of slots used</span></div>
        </>
      )}
      {row.spent !== null && <div className="tile"><b>{money(row.spent)}</b><span>spent</span></div>}
      <div className="tile">
        <b>{duration(row.ended_at === null && row.remaining_s !== null ? row.remaining_s : row.elapsed_s)}</b>
        <span>{row.ended_at === null && row.remaining_s !== null ? "left" : row.ended_at === null ? "so far" : "in all"}</span>
      </div>
    </div>
  );
}

function BestTile({row, onCopy}: {row: StudyRow; onCopy: (() => void) | null}) {
  if (row.directions.length > 1) {
    return <div className="tile"><b>{row.directions.length}</b><span>objectives, so that no trial is the best alone</span></div>;
  }
  if (row.metric === null) return null;
  if (row.best === null) return <div className="tile"><b>–</b><span>no value of {row.metric} yet</span></div>;
  return (
    <div className="tile">
      <b>{number(row.best.value, 4)}</b>
      <span>
        best {row.metric}, <Link to={addressOf.trial(row.id, row.best.trial)}>trial {row.best.trial}</Link>{" "}
        {onCopy !== null && <button type="button" className="plain" onClick={onCopy}>copy its parameters</button>}
      </span>
    </div>
  );
}
