// How far promise could be trusted: what it foretold at moments of a study that has ended, against what happened.

import {count, number} from "../../../format";
import {DataTable} from "../../../plot/data_table";
import type {Reliability} from "../../../record/contract";

const SIDE_PX = 200;
const LEFT_PX = 48;
const TOP_PX = 12;
const SMALLEST_PX = 2.5;
const LARGEST_PX = 11;

export function TrustPanel({of}: {of: Reliability}) {
  const part = (value: number) => `${(100 * value).toFixed(1)} %`;
  return (
    <section className="panel" aria-label="How far promise could be trusted">
      <header className="panel-head"><h2>How far promise could be trusted</h2></header>
      <div className="analysis-pair">
        <Square of={of} />
        <DataTable label="Promises against outcomes" table={{
          columns: ["promise", "predictions", "predicted", "came true"],
          rows: of.bins.map((bin) => [`${(100 * bin.low).toFixed(0)} to ${(100 * bin.high).toFixed(0)} %`, bin.count, part(bin.predicted),
                                      part(bin.happened)])}} />
      </div>
      <p className="muted">
        The chance to end among the study’s best, computed again from what was known at {count(of.count)} moments of the study, and how
        often it came true. On the line: as predicted. Calibration error {number(of.calibration_error)}, Brier score {number(of.brier)}{" "}
        (always predicting the mean: {number(of.base_brier)}). A trial that was ended early counts as one that would not have come true.
      </p>
    </section>
  );
}

function Square({of}: {of: Reliability}) {
  const most = Math.max(1, ...of.bins.map((bin) => bin.count));
  const x = (value: number) => LEFT_PX + SIDE_PX * value;
  const y = (value: number) => TOP_PX + SIDE_PX * (1 - value);
  const told = of.bins.map((bin) => `${(100 * bin.predicted).toFixed(0)} % foretold, ${(100 * bin.happened).toFixed(0)} % came true`);
  return (
    <svg className="small-picture" role="img" aria-label={`Promises against outcomes: ${told.join("; ")}`} width={LEFT_PX + SIDE_PX + 24}
         height={TOP_PX + SIDE_PX + 44}>
      {[0, 0.5, 1].map((tick) => (
        <g key={tick}>
          <line className="grid" x1={x(0)} x2={x(1)} y1={y(tick)} y2={y(tick)} />
          <text x={x(0) - 6} y={y(tick)} textAnchor="end" dominantBaseline="central">{100 * tick} %</text>
          <text x={x(tick)} y={y(0) + 16} textAnchor="middle">{100 * tick} %</text>
        </g>
      ))}
      <line className="grid" x1={x(0)} y1={y(0)} x2={x(1)} y2={y(1)} />
      {of.bins.map((bin) => (
        <circle key={bin.low} cx={x(bin.predicted)} cy={y(bin.happened)} fill="var(--accent)" fillOpacity={0.75}
                r={SMALLEST_PX + Math.sqrt(bin.count / most) * (LARGEST_PX - SMALLEST_PX)}>
          <title>{`${count(bin.count)} promises of ${(100 * bin.low).toFixed(0)} to ${(100 * bin.high).toFixed(0)} %`}</title>
        </circle>
      ))}
      <text x={x(0.5)} y={y(0) + 36} textAnchor="middle">predicted; upwards: came true</text>
    </svg>
  );
}
