// How numbers, times and names are shown.

const NOTHING = "–";
const MINUS = "−";

/** Three digits: 0.0312, 1,840, 2.5e-7. */
export function number(value: number | null | undefined, digits = 3): string {
  if (value === null || value === undefined) return NOTHING;
  if (Number.isNaN(value)) return "NaN";
  if (!Number.isFinite(value)) return value > 0 ? "∞" : MINUS + "∞";
  if (value === 0) return "0";
  const size = Math.abs(value);
  const sign = value < 0 ? MINUS : "";
  if (size < 1e-4 || size >= 1e9) return sign + size.toExponential(digits - 1).replace(/\.?0+e/, "e").replace("e+", "e");
  if (size >= 10 ** (digits - 1)) return sign + Math.round(size).toLocaleString("en-US");
  return sign + Number(size.toPrecision(digits)).toString();
}

/** A whole number with separators. */
export function count(value: number | null | undefined): string {
  return value === null || value === undefined ? NOTHING : value.toLocaleString("en-US");
}

export function percent(part: number | null | undefined): string {
  return part === null || part === undefined ? NOTHING : `${number(part * 100, 2)} %`;
}

export function money(value: number | null | undefined): string {
  return value === null || value === undefined ? NOTHING : value.toFixed(2);
}

/** 0.4 s, 12 s, 3:05, 2:10:00, 3 d 4 h. */
export function duration(seconds: number | null | undefined): string {
  if (seconds === null || seconds === undefined || !Number.isFinite(seconds)) return NOTHING;
  const s = Math.max(0, seconds);
  if (s < 10) return `${number(s, 2)} s`;
  if (s < 60) return `${Math.floor(s)} s`;
  const two = (n: number) => String(n).padStart(2, "0");
  const whole = Math.floor(s);
  const hours = Math.floor(whole / 3600);
  if (hours >= 48) return `${Math.floor(hours / 24)} d ${hours % 24} h`;
  const minutes = Math.floor(whole / 60) % 60;
  return hours ? `${hours}:${two(minutes)}:${two(whole % 60)}` : `${minutes}:${two(whole % 60)}`;
}

/** The clock's time, with the day where that is not today. */
export function time(at: number | null | undefined, now = Date.now() / 1000): string {
  if (at === null || at === undefined) return NOTHING;
  const date = new Date(at * 1000);
  const clock = date.toLocaleTimeString("en-GB");
  return date.toDateString() === new Date(now * 1000).toDateString() ? clock : `${day(date)} ${clock}`;
}

/** Hours and minutes. */
export function clock(at: number): string {
  return new Date(at * 1000).toLocaleTimeString("en-GB", {hour: "2-digit", minute: "2-digit"});
}

export function day(date: Date): string {
  const two = (n: number) => String(n).padStart(2, "0");
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
}

/** "3 min ago". */
export function ago(at: number, now: number): string {
  const s = Math.max(0, now - at);
  if (s < 60) return `${Math.floor(s)} s ago`;
  if (s < 3600) return `${Math.floor(s / 60)} min ago`;
  if (s < 48 * 3600) return `${Math.floor(s / 3600)} h ago`;
  return `${Math.floor(s / 86400)} d ago`;
}

// Controls, bidirectional marks, separators, lone surrogates, and what takes no place: what makes one name look like another.
const HIDDEN =
  /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u115f\u1160\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\ufff9-\ufffb]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g;

/** A text of others, with what cannot be seen shown as \u202E. Line ends stay where `lines` is set. */
export function visible(text: string, lines = false): string {
  return text.replace(HIDDEN, (hidden) =>
    lines && (hidden === "\n" || hidden === "\t")
      ? hidden
      : "\\u" + hidden.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0"));
}

/** At most so many characters, the middle cut out: what tells names apart is often at their end. */
export function shortened(text: string, most: number): string {
  const characters = Array.from(text);
  if (characters.length <= most) return text;
  const head = Math.ceil((most - 1) * 0.6);
  return characters.slice(0, head).join("") + "…" + characters.slice(characters.length - (most - 1 - head)).join("");
}
