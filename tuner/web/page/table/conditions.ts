// The conditions of a table, as they stand in its chips and in the address:
//   p:lr 1e-4..1e-2         a range; either end may be left out
//   state: running, none    one of these words; `none` is for rows without one
//   reason ~ out of memory  holds this text, whatever the case of its letters
// A column, word or text with signs of the grammar stands in quotes, as JSON writes it. Several are joined by semicolons.

export type Condition =
  | {kind: "range"; column: string; low: number; high: number}
  | {kind: "words"; column: string; words: (string | null)[]}
  | {kind: "contains"; column: string; text: string};

export type Parsed = {condition: Condition} | {error: string};

const PLAIN_COLUMN = /^(?:(?:p|u|values):)?[\w.\-/]+$/;
const PLAIN_WORD = /^[\w.\-/+]+$/;
const NONE = "none";

export function formatCondition(condition: Condition): string {
  const column = quoted(condition.column, PLAIN_COLUMN);
  switch (condition.kind) {
    case "range":
      if (condition.low === condition.high) return `${column} ${formatBound(condition.low)}`;
      return `${column} ${formatBound(condition.low)}..${formatBound(condition.high)}`;
    case "words":
      return `${column}: ${condition.words.map(formatWord).join(", ")}`;
    case "contains":
      return `${column} ~ ${/[;"\n]/.test(condition.text) ? JSON.stringify(condition.text) : condition.text}`;
  }
}

function quoted(text: string, plain: RegExp): string {
  return plain.test(text) ? text : JSON.stringify(text);
}

function formatWord(word: string | null): string {
  if (word === null) return NONE;
  return word === NONE ? JSON.stringify(word) : quoted(word, PLAIN_WORD);
}

export function formatConditions(conditions: readonly Condition[]): string {
  return conditions.map(formatCondition).join("; ");
}

/** The conditions of an address, and what is wrong with those that are none. */
export function parseConditions(text: string): {conditions: Condition[]; errors: string[]} {
  const conditions: Condition[] = [];
  const errors: string[] = [];
  for (const part of parts(text)) {
    const parsed = parseCondition(part);
    if ("condition" in parsed) conditions.push(parsed.condition);
    else errors.push(parsed.error);
  }
  return {conditions, errors};
}

function parts(text: string): string[] {
  const found: string[] = [];
  let from = 0;
  for (let i = 0; i <= text.length; ++i) {
    if (text[i] === '"') i = (endOfQuoted(text, i) ?? text.length + 1) - 1;
    if (i < text.length && text[i] !== ";") continue;
    found.push(text.slice(from, i).trim());
    from = i + 1;
  }
  return found.filter((part) => part !== "");
}

/** The shortest way to write a number, as people write it. */
export function formatBound(value: number): string {
  if (!Number.isFinite(value)) return "";
  const plain = String(value);
  const size = Math.abs(value);
  if (value === 0 || (size >= 1e-3 && size < 1e6)) return plain;
  const short = value.toExponential().replace("e+", "e");
  return short.length <= plain.length ? short : plain;
}

const NUMBER = "[+-]?(?:\\d+\\.?\\d*|\\.\\d+)(?:[eE][+-]?\\d+)?";
const RANGE = new RegExp(`^(${NUMBER})?\\s*\\.\\.\\s*(${NUMBER})?$`);
const BOUND = new RegExp(`^(<=|>=|=)?\\s*(${NUMBER})$`);

/** What somebody typed, or an address says. The error says what would be right. */
export function parseCondition(text: string): Parsed {
  const head = columnOf(text.trim());
  if (head === null) return {error: `${JSON.stringify(text)} begins with no column: write for example state: running`};
  const {column, rest} = head;
  if (rest.startsWith("~")) {
    const typed = rest.slice(1).trim();
    const wanted = typed.startsWith('"') ? unquoted(typed) ?? typed : typed;
    return wanted === "" ? {error: `${column} ~ needs a text`} : {condition: {kind: "contains", column, text: wanted}};
  }
  if (rest.startsWith(":")) return wordsOf(column, rest.slice(1));
  return rangeOf(column, rest.trim());
}

function columnOf(text: string): {column: string; rest: string} | null {
  if (text.startsWith('"')) {
    const end = endOfQuoted(text, 0);
    const column = end === null ? null : unquoted(text.slice(0, end));
    return end === null || column === null ? null : {column, rest: text.slice(end).trimStart()};
  }
  const found = /^(?:(?:p|u|values):)?[\w.\-/]+/.exec(text);
  const column = found?.[0];
  return column === undefined ? null : {column, rest: text.slice(column.length).trimStart()};
}

function endOfQuoted(text: string, from: number): number | null {
  for (let i = from + 1; i < text.length; ++i) {
    if (text[i] === "\\") ++i;
    else if (text[i] === '"') return i + 1;
  }
  return null;
}

function unquoted(text: string): string | null {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "string" ? value : null;
  } catch {
    return null;
  }
}

function rangeOf(column: string, text: string): Parsed {
  const range = RANGE.exec(text);
  if (range !== null && (range[1] !== undefined || range[2] !== undefined)) {
    const low = range[1] === undefined ? -Infinity : Number(range[1]);
    const high = range[2] === undefined ? Infinity : Number(range[2]);
    if (low > high) return {error: `${column}: ${range[1]} is more than ${range[2]}`};
    return {condition: {kind: "range", column, low, high}};
  }
  const bound = BOUND.exec(text);
  if (bound === null) {
    return {error: `${column} needs a range such as 1e-4..1e-2, words such as ${column}: a, b, or ${column} ~ text`};
  }
  const value = Number(bound[2]);
  return {condition: {kind: "range", column, low: bound[1] === "<=" ? -Infinity : value,
                      high: bound[1] === ">=" ? Infinity : value}};
}

function wordsOf(column: string, text: string): Parsed {
  const words: (string | null)[] = [];
  let at = 0;
  while (at < text.length) {
    while (at < text.length && (text[at] === " " || text[at] === ",")) ++at;
    if (at >= text.length) break;
    if (text[at] === '"') {
      const end = endOfQuoted(text, at);
      const word = end === null ? null : unquoted(text.slice(at, end));
      if (end === null || word === null) return {error: `${column}: a quote is not closed in ${text.trim()}`};
      words.push(word);
      at = end;
    } else {
      const comma = text.indexOf(",", at);
      const end = comma < 0 ? text.length : comma;
      const word = text.slice(at, end).trim();
      words.push(word === NONE ? null : word);
      at = end;
    }
  }
  if (words.length === 0) return {error: `${column}: needs at least one word`};
  return {condition: {kind: "words", column, words}};
}
