// Curves of the best trials and of those that are chosen, with what can be chosen about them.

import {useMemo} from "react";

import {Problem} from "../../parts/problem";
import {parseIds} from "../../table/trials_view";
import {addressOf, go, useQuery, useQueryText, useRange} from "../../url";
import {AxisChoice, useAxis} from "./axis_choice";
import {linksOf} from "./curve_links";
import {canBeLog} from "./curve_set";
import {CurvesPlot} from "./curves_plot";
import {useMetric} from "./metric_choice";
import {useNewestKeys} from "./newest_keys";
import {usePictureButton} from "./picture";
import type {TrialsPicture} from "./trials_picture";
import {useCurves} from "./use_curves";

const TOPS = ["5", "20", "50"];
const SMOOTHINGS = ["0", "0.5", "0.8", "0.9", "0.97"];

export function CurvesPanel({study, row, trials, hovered, onHover, onOpen}: TrialsPicture) {
  const [axis, setAxis] = useAxis();
  const metric = useMetric(study);
  const [top, setTop] = useQuery("top", "20");
  const [smoothing, setSmoothing] = useQuery("smooth", "0");
  const [logs, setLogs] = useQuery("log", "");
  const [range, setRange] = useQuery("range", "usual");
  // Over time the curves are zoomed with the lanes.
  const [view, setView] = useRange(axis === "time" ? "t" : "zoom");
  const ids = useQueryText("chosen");
  const chosen = useMemo(() => new Set(parseIds(ids)), [ids]);
  const xlog = logs.includes("x") && axis !== "time";
  const weight = Math.max(0, Math.min(0.99, Number(smoothing) || 0));
  const best = top === "chosen" ? 0 : Math.max(1, Math.min(300, Number(top) || 20));
  const {curves, error} = useCurves({study: study.id, axis, xlog, objective: metric.objective, best, trials: [...chosen], view}, weight);
  const links = useMemo(() => (axis === "step" ? linksOf(curves, trials.store) : []),
                        [axis, curves, trials.store, trials.version]); // eslint-disable-line react-hooks/exhaustive-deps
  const possible = canBeLog(curves.map((curve) => curve.y));
  const ylog = logs.includes("y") && possible;
  const toggleLog = (of: string) => setLogs(logs.includes(of) ? logs.replace(of, "") : [...logs, of].sort().join(""));
  const none = study.directions.length > 1 && study.metrics.length === 0
    ? "Trials of several objectives report no values on the way: their values are in the table."
    : study.metric === null ? "Its trials have no metric, and so no curves." : null;
  const topIds = (k: number) => curves.slice(0, k).map((curve) => curve.id);
  const compareTop = () => topIds(5).length > 1 && go(addressOf.compare(topIds(5)));
  useNewestKeys([{key: "5 c", does: "compare the best five", run: compareTop}]);
  const [picture, pictureButton] = usePictureButton(`${study.name}-curves`);
  const tools = (
    <>
      {metric.choice}
      <AxisChoice axis={axis} onAxis={setAxis} onView={setView} without={row.kind === "ask" ? "slot_seconds" : undefined} />
      <label className="tool">
        show{" "}
        <select value={TOPS.includes(top) || top === "chosen" ? top : String(best)} onChange={(event) => setTop(event.target.value)}>
          {[...new Set([...TOPS, String(best || 20)])].map((one) => <option key={one} value={one}>top {one}</option>)}
          <option value="chosen">chosen</option>
        </select>
      </label>
      <label className="tool">
        smooth{" "}
        <select value={smoothing} onChange={(event) => setSmoothing(event.target.value)}>
          {[...new Set([...SMOOTHINGS, smoothing])].map((one) => <option key={one} value={one}>{one}</option>)}
        </select>
      </label>
      <button type="button" aria-pressed={ylog} disabled={!possible} onClick={() => toggleLog("y")}>log y</button>
      {axis !== "time" && <button type="button" aria-pressed={xlog} onClick={() => { setView(null); toggleLog("x"); }}>log x</button>}
      <button type="button" aria-pressed={range === "all"} title="with the outliers on the worse side"
              onClick={() => setRange(range === "all" ? "usual" : "all")}>all values</button>
      {pictureButton}
    </>
  );
  return (
    <section className="panel" aria-label="Curves" ref={picture}>
      <header className="panel-head">
        <h2>Curves</h2>
        {none === null && <button type="button" disabled={topIds(5).length < 2} onClick={compareTop}>Compare top 5</button>}
      </header>
      {error !== null && <Problem error={error} what="Curves" />}
      {none !== null ? <p className="empty">{none}</p> : (
        <CurvesPlot label={`${metric.name} of the trials`} curves={curves} metric={metric.name}
                    maximize={metric.maximize} axis={axis} xlog={xlog} ylog={ylog} whole={range === "all"}
                    smooth={weight > 0} height={320} view={view}
                    onView={setView} chosen={chosen} best={row.best?.trial_id ?? null} hovered={hovered} onHover={onHover}
                    onOpen={(curve) => onOpen(curve.trial)} links={links} tools={tools} />
      )}
    </section>
  );
}
