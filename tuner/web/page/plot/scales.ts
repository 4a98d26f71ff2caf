// Scales as painters see them: numbers in, pixels out, whatever the kind.

import {scaleLinear, scaleLog, scaleTime} from "d3-scale";

import {number} from "../format";

export type Range = readonly [number, number];

export interface AxisOf {
  kind: "linear" | "log" | "time";
  /** All there is; what is seen of it is the plot's view. */
  domain: Range;
  label: string;
  format?: (value: number) => string;
}

export interface Scale {
  (value: number): number;
  invert(pixel: number): number;
  ticks(count: number): number[];
  format(value: number): string;
  domain: Range;
}

/** A domain that can be drawn: ends that differ, above 0 where it is logarithmic. */
export function drawable(axis: AxisOf): Range {
  let [low, high] = axis.domain;
  if (!Number.isFinite(low) || !Number.isFinite(high)) [low, high] = axis.kind === "log" ? [1, 10] : [0, 1];
  if (axis.kind === "log") {
    if (high <= 0) [low, high] = [1, 10];
    if (low <= 0) low = high / 1000;
    return low < high ? [low, high] : [low / 2, high * 2];
  }
  if (low < high) return [low, high];
  const around = axis.kind === "time" ? 60 : Math.abs(low) / 10 || 1;
  return [low - around, high + around];
}

export function scaleOf(axis: AxisOf, domain: Range, range: Range): Scale {
  return axis.kind === "time" ? timeScale(axis, domain, range) : plainScale(axis, domain, range);
}

/** What D3's scales say too, for painters that ask a hundred thousand times a frame. */
function straight(domain: Range, range: Range): (value: number) => number {
  const slope = (range[1] - range[0]) / (domain[1] - domain[0]);
  return (value) => range[0] + (value - domain[0]) * slope;
}

function plainScale(axis: AxisOf, domain: Range, range: Range): Scale {
  const d3 = (axis.kind === "log" ? scaleLog() : scaleLinear()).domain(domain).range(range);
  const scale = axis.kind === "log" ? (value: number) => d3(value) : straight(domain, range);
  const format = axis.format ?? ((value: number) => number(value));
  return Object.assign(scale, {
    invert: (pixel: number) => d3.invert(pixel),
    ticks: (count: number) => {
      const all = d3.ticks(count);
      if (axis.kind !== "log" || all.length <= count * 1.5) return all;
      const tens = all.filter((value) => Math.abs(Math.log10(value) % 1) < 1e-9 || Math.abs(Math.log10(value) % 1) > 1 - 1e-9);
      return tens.length > 1 ? tens : all.filter((_, at) => at % Math.ceil(all.length / count) === 0);
    },
    format,
    domain,
  });
}

function timeScale(axis: AxisOf, domain: Range, range: Range): Scale {
  const d3 = scaleTime().domain([domain[0] * 1000, domain[1] * 1000]).range(range);
  const scale = straight(domain, range);
  const span = domain[1] - domain[0];
  const format = axis.format ?? ((value: number) => clockLabel(value, span));
  return Object.assign(scale, {
    invert: (pixel: number) => d3.invert(pixel).getTime() / 1000,
    ticks: (count: number) => d3.ticks(count).map((date) => date.getTime() / 1000),
    format,
    domain,
  });
}

function clockLabel(at: number, span: number): string {
  const date = new Date(at * 1000);
  const midnight = date.getHours() === 0 && date.getMinutes() === 0 && date.getSeconds() === 0;
  if (midnight && span > 3600) return date.toLocaleDateString("en-GB", {day: "numeric", month: "short"});
  return date.toLocaleTimeString("en-GB", {hour: "2-digit", minute: "2-digit", ...(span < 300 ? {second: "2-digit"} : {})});
}
