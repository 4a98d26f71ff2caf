// Whether the pool's slots are with the right trials: promise and goodput, now and over time.

import {useMemo} from "react";

import type {Curve, Curves} from "../../contract";
import {count, number} from "../../format";
import {Choices} from "../../parts/choices";
import {Link} from "../../parts/link";
import {record} from "../../record/record";
import {PartBar, Swatch} from "../../table/cells";
import {numberOf} from "../../table/trials_store";
import type {Trials} from "../../table/use_trials";
import {addressOf, useQuery, useRange} from "../../url";
import {useAnswer} from "../../store";
import {type ShownCurve, shownCurve} from "./curve_set";
import {CurvesPlot} from "./curves_plot";
import type {TrialsPicture} from "./trials_picture";

type Shows = "now" | "promise" | "goodput";
const ALL: readonly (readonly [Shows, string])[] =
  [["now", "now"], ["promise", "promise over time"], ["goodput", "goodput over time"]];
/** In a record nothing goes on. */
const SHOWS = record === null ? ALL : ALL.slice(1);
const MOST_ROWS = 12;
const MOST_LINES = 30;
const NONE: ReadonlySet<number> = new Set();

interface Running {
  id: number;
  trial: number;
  promise: number;
  goodput: number;
  slots: number;
  batch: number;
}

export function PromisePanel(props: Omit<TrialsPicture, "row">) {
  const [shows, setShows] = useQuery("pg", record === null ? "now" : "promise");
  const running = useRunning(props.trials);
  return (
    <section className="panel" aria-label="Promise and goodput">
      <header className="panel-head">
        <h2>Promise × goodput</h2>
        <Choices label="" of={SHOWS} chosen={shows as Shows} onChoose={setShows} />
      </header>
      {shows === "promise" || shows === "goodput"
        ? <OverTime {...props} running={running} of={shows} />
        : <Now {...props} running={running} />}
    </section>
  );
}

/** Trials that hold slots, the most promising first. */
function useRunning(trials: Trials): Running[] {
  const {store, version} = trials;
  return useMemo(() => {
    const rows = store.filter([{kind: "words", column: "state", words: ["running"]}]);
    const all = Array.from(rows, (row): Running => ({
      id: store.number("id", row), trial: store.number("number", row), promise: store.number("promise", row),
      goodput: store.number("goodput", row), slots: store.number("slots", row), batch: store.number("batch_size", row),
    }));
    return all.sort((a, b) => (b.promise || 0) - (a.promise || 0) || a.trial - b.trial);
  }, [store, version]); // eslint-disable-line react-hooks/exhaustive-deps
}

function known(value: number): number | null {
  return Number.isNaN(value) ? null : value;
}

function Now({study, running, hovered, onHover}: Omit<TrialsPicture, "row"> & {running: Running[]}) {
  if (running.length === 0) return <p className="empty">No trial runs now.</p>;
  return (
    <>
      <div className="table-frame" tabIndex={0} role="region" aria-label="Running trials, as a table">
        <table>
          <thead>
            <tr>
              <th scope="col">trial</th>
              <th scope="col" title="the probability that it ends among the best">promise</th>
              <th scope="col" className="number" title="samples a second, weighted by what they teach">goodput</th>
              <th scope="col" className="number">slots</th>
              <th scope="col" className="number">batch</th>
            </tr>
          </thead>
          <tbody onMouseLeave={() => onHover(null)}>
            {running.slice(0, MOST_ROWS).map((trial) => (
              <tr key={trial.id} className={trial.id === hovered ? "hovered" : undefined} onMouseEnter={() => onHover(trial.id)}>
                <th scope="row"><Swatch place={trial.id} /> <Link to={addressOf.trial(study.id, trial.trial)}>{trial.trial}</Link></th>
                <td><PartBar part={known(trial.promise)} /></td>
                <td className="number">{number(known(trial.goodput))}</td>
                <td className="number">{number(known(trial.slots))}</td>
                <td className="number">{number(known(trial.batch))}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {running.length > MOST_ROWS && (
        <p className="muted">and {count(running.length - MOST_ROWS)} more of less promise: sort the table by it</p>
      )}
    </>
  );
}

/** The answer's other figures as a curve of their own. */
function figureCurve(curve: Curve, of: "promise" | "goodput"): ShownCurve {
  const values = curve[of] ?? [];
  const places = values.map((value, i) => [numberOf(curve.x[i]), numberOf(value)] as const)
    .filter(([, value]) => !Number.isNaN(value));
  const drawn = {...curve, x: places.map(([x]) => x), y: places.map(([, y]) => y), points: places.length};
  return shownCurve(drawn, "time", 0, undefined);
}

interface OverTimeProps extends Omit<TrialsPicture, "row"> {
  running: Running[];
  of: "promise" | "goodput";
}

function OverTime({study, running, of, hovered, onHover, onOpen}: OverTimeProps) {
  const [view, setView] = useRange("pgzoom");
  const ids = running.slice(0, MOST_LINES).map(({id}) => id).sort((a, b) => a - b);
  const which = ids.length > 0 ? `trials=${ids.join(",")}` : "best=20";
  const answer = useAnswer<Curves>(`/api/view/studies/${study.id}/curves?${which}&x=time&width=800`,
                                   (event) => event.studies.includes(study.id));
  const curves = useMemo(
    () => (answer.data?.curves ?? []).map((curve) => figureCurve(curve, of)).filter((curve) => curve.x.length > 0),
    [answer.data, of],
  );
  if (curves.length === 0 && !answer.loading) {
    return <p className="empty">No {of} has been recorded with the values of these trials.</p>;
  }
  return (
    <CurvesPlot label={`${of} of the trials over time`} curves={curves} metric={of} maximize axis="time" xlog={false} ylog={false} whole
                smooth={false} height={260} view={view} onView={setView} chosen={NONE} best={null} hovered={hovered} onHover={onHover}
                onOpen={(curve) => onOpen(curve.trial)} />
  );
}
