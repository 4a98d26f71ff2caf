// A study in a few figures.

import type {Study, StudyRow} from "../../contract";
import {count, duration, money, number, percent} from "../../format";
import {Link} from "../../parts/link";
import {Name} from "../../parts/name";
import {record} from "../../record/record";
import {formatConditions} from "../../table/conditions";
import type {Kept} from "../../table/kept";
import {addressOf, setQuery} from "../../url";

const MOST_CONSTRAINTS = 3;

interface TilesProps {
  study: Study;
  row: StudyRow;
  kept: Kept | null;
  poolSlots: number;
  onCopyBest: (() => void) | null;
}

export function Tiles({study, row, kept, poolSlots, onCopyBest}: TilesProps) {
  const {trials} = row;
  const done = trials.complete + trials.pruned + trials.failed;
  const all = done + trials.waiting + trials.running + trials.paused;
  const rest = [
    [trials.running, "running"], [trials.waiting, "waiting"], [trials.paused, "paused"], [trials.pruned, "pruned"],
    [trials.failed, "failed"],
  ].filter(([n]) => n !== 0).map(([n, what]) => `${count(n as number)} ${what}`);
  return (
    <div className="tiles">
      <BestTile row={row} kept={kept} onCopy={onCopyBest} />
      <div className="tile">
        <b>{count(all)}{row.total === null ? "" : ` of ${count(row.total)}`}</b>
        <span>trials{rest.length > 0 ? `: ${rest.join(", ")}` : ""}</span>
      </div>
      {kept !== null && <KeptTile kept={kept} constraints={study.constraints} />}
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

function KeptTile({kept, constraints}: {kept: Kept; constraints: readonly string[]}) {
  const more = constraints.length - MOST_CONSTRAINTS;
  const told = kept.keep + kept.breaks;
  const show = () => setQuery({tab: null, f: formatConditions([{kind: "words", column: "infeasible", words: ["yes"]}])}, "push");
  return (
    <div className="tile">
      <b>{told === 0 ? "–" : `${count(kept.keep)} of ${count(told)}`}</b>
      <span>
        {told === 0 ? "no trial has told yet whether it keeps to" : "trials keep to"} {constraints.length === 0 ? "what they have to"
          : constraints.slice(0, MOST_CONSTRAINTS).map((one, at) => <span key={one}>{at > 0 && ", "}<Name of={one} most={40} /></span>)}
        {more > 0 && ` and ${count(more)} more`}
        {kept.breaks > 0 && <>{" "}<button type="button" className="plain" onClick={show}>show the others</button></>}
      </span>
    </div>
  );
}

function BestTile({row, kept, onCopy}: {row: StudyRow; kept: Kept | null; onCopy: (() => void) | null}) {
  if (row.directions.length > 1) {
    return <div className="tile"><b>{row.directions.length}</b><span>objectives, so that no trial is the best alone</span></div>;
  }
  if (row.metric === null) return null;
  if (row.best === null) {
    const none = kept !== null && kept.breaks > 0 && kept.keep === 0 ? "no trial keeps to its constraints yet" : `no value of ${row.metric} yet`;
    return <div className="tile"><b>–</b><span>{none}</span></div>;
  }
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
