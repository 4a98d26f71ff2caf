// The home page: who holds the slots now and why, what needs somebody, and all studies.

import {useQuery, setQuery} from "../../url";
import type {Overview} from "../../contract";
import {count, money} from "../../format";
import {useNow} from "../../parts/now";
import {Problem} from "../../parts/problem";
import {Tile} from "../../parts/tile";
import {WhyCard} from "../../parts/why";
import {Lanes} from "../../plot/lanes";
import {useOverview} from "../../store";
import {Alerts} from "./alerts";
import {StudiesTable} from "./studies_table";

export function PoolPage() {
  const {data, error} = useOverview();
  const now = useNow();
  return (
    <>
      <h1 className="unseen">Pool</h1>
      {error && !data && <Problem error={error} what="The pool" />}
      {data && (
        <>
          <Tiles overview={data} />
          <Alerts alerts={data.alerts} now={now} />
          <SlotsPanel overview={data} now={now} />
          <StudiesTable studies={data.studies} now={now} />
        </>
      )}
    </>
  );
}

function Tiles({overview}: {overview: Overview}) {
  const {pool, studies} = overview;
  const running = studies.filter((study) => study.state === "running");
  const sum = (of: (study: (typeof studies)[number]) => number) => studies.reduce((total, study) => total + of(study), 0);
  const spent = studies.some((study) => study.spent !== null) ? sum((study) => study.spent ?? 0) : null;
  const failed = sum((study) => study.trials.failed);
  return (
    <div className="tiles">
      <Tile value={`${count(pool.held)} of ${count(pool.slots)}`} name="slots held" />
      <Tile value={count(running.length)} name={running.length === 1 ? "study runs" : "studies run"} />
      <Tile value={count(sum((study) => study.trials.running))} name="trials run" />
      <Tile value={count(sum((study) => study.trials.waiting))} name="wait" />
      {failed > 0 && <Tile value={count(failed)} name="failed" kind="bad" />}
      {pool.waiting_slots > 0 && <Tile value={count(pool.waiting_slots)} name="slots that clients wait for" />}
      {spent !== null && <Tile value={money(spent)} name="spent" />}
    </div>
  );
}

function SlotsPanel({overview, now}: {overview: Overview; now: number}) {
  const [why, setWhy] = useQuery("why", "");
  const chosen = /^(\d+)@(\d+(?:\.\d+)?)$/.exec(why);
  return (
    <section className="panel" aria-labelledby="slots-head">
      <div className="panel-head"><h2 id="slots-head">Slots</h2></div>
      {overview.pool.nodes.length === 0 ? (
        <p className="empty">
          No machine has joined this pool yet. On each that is to train: <code>tuner agent --join HOST:PORT</code>
        </p>
      ) : (
        <Lanes onWhy={(trial, at) => setQuery({why: `${trial}@${at.toFixed(1)}`})} />
      )}
      {chosen && (
        <WhyCard trial_id={Number(chosen[1])} at={Number(chosen[2])} now={now} onClose={() => setWhy("")} />
      )}
    </section>
  );
}
