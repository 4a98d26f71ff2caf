// What the trials show of batch sizes and scaling rules: the value that they came to, and the time to one value.

import {duration, number, visible} from "../../../format";
import {DataTable} from "../../../plot/data_table";
import {scaleOf, drawable} from "../../../plot/scales";
import type {Sweep} from "../../../record/contract";

const WIDTH_PX = 440;
const HEIGHT_PX = 260;
const LEFT_PX = 64;
const RIGHT_PX = 16;
const TOP_PX = 12;
const BOTTOM_PX = 40;
const APART_PX = 8;
const COLORS = 8;
const TICKS = 5;

export function SweepPanel({of, metric}: {of: Sweep; metric: string}) {
  const rules = [...new Set(of.groups.map(({rule}) => rule))];
  const numbers = of.groups.map(({values}) => values.filter((value): value is number => value !== null));
  const times = of.groups.map(({seconds}) => seconds);
  return (
    <section className="panel" aria-label="By scaling rule and batch size">
      <header className="panel-head"><h2>By scaling rule and batch size</h2></header>
      <div className="analysis-pair">
        {numbers.some(({length}) => length > 0) && <Dots label={metric} of={of} points={numbers} rules={rules} text={(value) => number(value)} />}
        {times.some(({length}) => length > 0) && (
          <Dots label={`time to ${number(of.target, 4)}`} of={of} points={times} rules={rules} text={duration} />
        )}
      </div>
      <p className="muted">
        {rules.map((rule, place) => rule === "" ? null : (
          <span key={rule} className="sweep-rule">
            <svg width={10} height={10} aria-hidden="true"><circle cx={5} cy={5} r={4} fill={colorOf(place)} /></svg>{" "}
            <bdi>{visible(rule)}</bdi>{" "}
          </span>
        ))}
        A dot is a trial; lines join the best of each batch size.
        {of.target !== null && ` Times are those in which the trial held slots until it reported ${number(of.target, 4)} or better`}
        {of.target !== null && (of.target_given ? "." : ", the best value that every group reached.")}
      </p>
      <DataTable label="Scaling rules and batch sizes" table={{columns: of.rows[0]!.map((name) => visible(name)),
                                                              rows: of.rows.slice(1).map((row) => row.map((cell) => visible(cell)))}} />
    </section>
  );
}

function colorOf(place: number): string {
  return `var(--c${(place % COLORS) + 1})`;
}

interface DotsProps {
  label: string;
  of: Sweep;
  /** By group, the best first. */
  points: readonly (readonly number[])[];
  rules: readonly string[];
  text: (value: number) => string;
}

function Dots({label, of, points, rules, text}: DotsProps) {
  const batches = [...new Set(of.groups.map(({batch}) => batch))].sort((a, b) => Number(a) - Number(b));
  const all = points.flat();
  const axis = {kind: "linear", domain: [Math.min(...all), Math.max(...all)], label} as const;
  const y = scaleOf(axis, drawable(axis), [HEIGHT_PX - BOTTOM_PX, TOP_PX + 8]);
  const step = (WIDTH_PX - LEFT_PX - RIGHT_PX) / batches.length;
  const x = (group: number) => LEFT_PX + (batches.indexOf(of.groups[group]!.batch) + 0.5) * step +
    APART_PX * (rules.indexOf(of.groups[group]!.rule) - (rules.length - 1) / 2);
  const lines = rules.map((rule) => of.groups.map((_, group) => group)
    .filter((group) => of.groups[group]!.rule === rule && points[group]!.length > 0)
    .map((group) => `${x(group)},${y(points[group]![0]!)}`).join(" "));
  return (
    <svg className="small-picture" role="img" aria-label={`${visible(label)} by batch size; the table below has the same`}
         viewBox={`0 0 ${WIDTH_PX} ${HEIGHT_PX}`}>
      {y.ticks(TICKS).map((tick) => (
        <g key={tick}>
          <line className="grid" x1={LEFT_PX} x2={WIDTH_PX - RIGHT_PX} y1={y(tick)} y2={y(tick)} />
          <text x={LEFT_PX - 6} y={y(tick)} textAnchor="end" dominantBaseline="central">{text(tick)}</text>
        </g>
      ))}
      {batches.map((batch, place) => (
        <text key={batch} x={LEFT_PX + (place + 0.5) * step} y={HEIGHT_PX - BOTTOM_PX + 18} textAnchor="middle">{visible(batch)}</text>
      ))}
      <text x={(LEFT_PX + WIDTH_PX - RIGHT_PX) / 2} y={HEIGHT_PX - 4} textAnchor="middle">batch size; upwards: {visible(label)}</text>
      {lines.map((line, rule) => <polyline key={rule} points={line} fill="none" stroke={colorOf(rule)} strokeWidth={1.5} />)}
      {points.map((of_group, group) => of_group.map((value, place) => (
        <circle key={`${group} ${place}`} cx={x(group)} cy={y(value)} r={3.5} fill={colorOf(rules.indexOf(of.groups[group]!.rule))} fillOpacity={0.8} />
      )))}
    </svg>
  );
}
