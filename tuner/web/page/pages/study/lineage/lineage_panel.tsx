// The clones of a study: who comes from whom, as a picture and as a list beside it.

import {useCallback, useMemo} from "react";

import type {Study} from "../../../contract";
import {count, number, visible} from "../../../format";
import {Link} from "../../../parts/link";
import {Name} from "../../../parts/name";
import {State} from "../../../parts/state";
import {type Frame, Plot} from "../../../plot/plot";
import type {Style} from "../../../plot/style";
import {addressOf, useQuery, useRange} from "../../../url";
import type {TrialsPicture} from "../trials_picture";
import {type Member, descentOf, nextLane, withoutCheckpoint} from "./lineage";
import {LANE_PX, laneAt, middleOf, paintDescent, paintLane} from "./lineage_painter";

/** So many lanes are drawn, and of more these unless all are asked for. */
const MOST = 200;
const FEW = 24;
const MOST_SHOWN = 3;
const LEAD_PX = 64;
/** For the mark at the end of the longest. */
const ROOM = 1.03;

export function LineagePanel({study, row, trials, hovered, onHover, onOpen}: TrialsPicture) {
  const {store, version} = trials;
  const [lines, setLines] = useQuery("lines", "few");
  const {members, all} = useMemo(() => descentOf(store, study.direction, lines === "all" ? MOST : FEW),
                                 [store, version, study.direction, lines]); // eslint-disable-line react-hooks/exhaustive-deps
  const [view, setView] = useRange("lz");
  const best = row.best?.trial_id ?? null;
  const last = members.reduce((most, one) => Math.max(most, one.to), 1);
  const x = useMemo(() => ({kind: "linear" as const, domain: [0, last * ROOM] as const, label: "step"}), [last]);
  const paint = useCallback((context: CanvasRenderingContext2D, frame: Frame, style: Style) =>
    paintDescent(context, frame, style, members, best), [members, best]);
  if (members.length === 0) return null;
  const marked = hovered === null ? -1 : members.findIndex((one) => one.id === hovered);
  const families = new Set(members.map((one) => one.founder)).size;
  const clones = members.filter((one) => one.parent !== null).length;
  return (
    <section className="panel" aria-label="Lineage">
      <header className="panel-head">
        <h2>Lineage</h2>
        {all > members.length && <span className="muted">{count(members.length)} of {count(all)} trials, the lines of the best first</span>}
        {all > FEW && (
          <button type="button" aria-pressed={lines === "all"} onClick={() => setLines(lines === "all" ? "few" : "all")}>
            Show {count(Math.min(all, MOST))}
          </button>
        )}
      </header>
      <div className="lineage">
        <div>
          <Plot<number>
            label="Which trial began with whose checkpoint" left={LEAD_PX} height={members.length * LANE_PX} x={x} view={view} onView={setView}
            summary={`${count(clones)} ${clones === 1 ? "clone" : "clones"} in ${count(families)} ${families === 1 ? "line" : "lines"}. A bar is a trial from its first step to its last; a cross: it was pruned or failed; a ring: it goes on.`}
            paint={paint} paintCursor={paintLane}
            find={(_, py) => (laneAt(py) >= 0 && laneAt(py) < members.length ? laneAt(py) : null)}
            step={(lane, move) => nextLane(members, lane, move)}
            place={(lane, frame) => [frame.x(members[lane]?.to ?? 0), middleOf(lane)]}
            describe={(lane) => (members[lane] === undefined ? "" : described(members[lane]!))}
            onMark={(lane) => onHover(lane === null ? null : members[lane]?.id ?? null)} marked={marked < 0 ? null : marked}
            onOpen={(lane) => members[lane] && onOpen(members[lane]!.trial)}
            lead={members.map((one, lane) => (
              <span className="lineage-name" key={one.id} style={{top: lane * LANE_PX}}>{one.id === best && "★ "}{one.trial}</span>
            ))}
            table={() => ({columns: ["Trial", "Clone of", "From step", "With", "Last step", study.metric ?? "Value", "State"],
                           rows: members.map((one) => [one.trial, one.parent ?? "–", hasBegun(one) ? one.from : "–", setText(one, Infinity), one.to,
                                                       valueText(one), one.state])})}
          />
        </div>
        <List study={study} members={members} best={best} onHover={onHover} />
      </div>
    </section>
  );
}

/** As a clone, at a step of its parent. */
function hasBegun(one: Member): boolean {
  return one.parent !== null && !one.lacks;
}

export function described(one: Member): string {
  const origin = one.parent === null ? "began afresh"
    : `clone of trial ${one.parent} ${one.lacks ? `that ${withoutCheckpoint(one.state)}` : `at step ${count(one.from)}`}`;
  const set = setText(one, MOST_SHOWN);
  return `trial ${one.trial}, ${one.state}: ${origin}${set === "" ? "" : `, with ${set}`}\n${
    Number.isNaN(one.value) ? "no value yet" : `${valueText(one)} by step ${count(one.to)}`}`;
}

function valueText(one: Member): string {
  return number(Number.isNaN(one.value) ? null : one.value, 4);
}

function setText(one: Member, most: number): string {
  const texts = one.set.slice(0, most).map(([name, value]) => `${visible(name)} ${typeof value === "number" ? number(value, 4) : visible(value)}`);
  return texts.join(", ") + (one.set.length > most ? `, and ${one.set.length - most} more` : "");
}

function List({study, members, best, onHover}: {study: Study; members: readonly Member[]; best: number | null; onHover: (id: number | null) => void}) {
  return (
    <div className="table-frame" tabIndex={0} role="region" aria-label="Clones, as a list">
      <table>
        <thead>
          <tr>
            <th scope="col">trial</th><th scope="col">clone of</th><th scope="col" className="number">from step</th><th scope="col">with</th>
            <th scope="col" className="number">{visible(study.metric ?? "value").slice(0, 24)}</th><th scope="col">state</th>
          </tr>
        </thead>
        <tbody>
          {members.map((one) => (
            <tr key={one.id} onMouseEnter={() => onHover(one.id)} onMouseLeave={() => onHover(null)}>
              <th scope="row"><Link to={addressOf.trial(study.id, one.trial)}>{one.trial}</Link>{one.id === best && " ★"}</th>
              <td>{one.parent === null ? "–" : <Link to={addressOf.trial(study.id, one.parent)}>{one.parent}</Link>}</td>
              <td className="number">{hasBegun(one) ? count(one.from) : "–"}</td>
              <td>{one.set.slice(0, MOST_SHOWN).map(([name, value], at) => (
                <span key={name}>{at > 0 && ", "}<Name of={name} most={30} /> {typeof value === "number" ? number(value, 4) : <Name of={value} most={30} />}</span>
              ))}{one.set.length > MOST_SHOWN && ` and ${one.set.length - MOST_SHOWN} more`}</td>
              <td className="number">{valueText(one)}</td>
              <td><State of={one.state} /></td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
