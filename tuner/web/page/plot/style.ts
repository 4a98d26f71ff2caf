// The theme's colours, as painters want them.

export interface Style {
  text: string;
  muted: string;
  line: string;
  strongLine: string;
  panel: string;
  free: string;
  accent: string;
  good: string;
  warn: string;
  bad: string;
  onSeries: string;
  series: readonly string[];
  rampLow: string;
  rampHigh: string;
  font: string;
}

const SERIES = ["--c1", "--c2", "--c3", "--c4", "--c5", "--c6", "--c7", "--c8"];

export function readStyle(): Style {
  const computed = getComputedStyle(document.documentElement);
  const of = (name: string) => computed.getPropertyValue(name).trim();
  return {
    text: of("--text"),
    muted: of("--muted"),
    line: of("--line"),
    strongLine: of("--strong-line"),
    panel: of("--panel"),
    free: of("--free"),
    accent: of("--accent"),
    good: of("--good"),
    warn: of("--warn"),
    bad: of("--bad"),
    onSeries: of("--on-series"),
    series: SERIES.map(of),
    rampLow: of("--ramp-low"),
    rampHigh: of("--ramp-high"),
    font: `12px ${computed.fontFamily || "sans-serif"}`,
  };
}

/** One of the palette, the same for the same number. */
export function seriesColor(style: Style, index: number): string {
  return style.series[((index % style.series.length) + style.series.length) % style.series.length] ?? style.text;
}

/** Between the two ends of the ramp, by 0 to 1. */
export function rampColor(style: Style, part: number): string {
  const low = channels(style.rampLow);
  const high = channels(style.rampHigh);
  const t = Math.min(1, Math.max(0, part));
  const mix = (at: 0 | 1 | 2) => Math.round(low[at] + (high[at] - low[at]) * t);
  return `rgb(${mix(0)}, ${mix(1)}, ${mix(2)})`;
}

/** The same for thin marks, which have to be seen on the ground at its weaker end, too. */
export function markColor(style: Style, part: number): string {
  return rampColor(style, 0.4 + 0.6 * part);
}

function channels(hex: string): [number, number, number] {
  const value = parseInt(hex.slice(1), 16);
  return [(value >> 16) & 255, (value >> 8) & 255, value & 255];
}

/** Black or white, whichever is read better on a colour "#rrggbb" or "rgb(r, g, b)". */
export function textOn(color: string): string {
  const parts = color.startsWith("#") ? channels(color) : (color.match(/\d+/g) ?? []).map(Number);
  const linear = parts.map((part) => {
    const c = part / 255;
    return c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
  });
  const luminance = 0.2126 * (linear[0] ?? 0) + 0.7152 * (linear[1] ?? 0) + 0.0722 * (linear[2] ?? 0);
  return luminance > 0.19 ? "#0b0e11" : "#ffffff";
}
