// The trials of a study as columns: numbers as doubles (NaN: unknown), words as indices into a list (-1: none). Rows are added and
// overwritten by what the service answers, and found by the trial's id. 100,000 rows are filtered within a frame.
import type {Condition} from "./conditions";

/** Columns as the service writes them: a name in `words` says that its column's values are indices into that list. */
export interface Slice {
  columns: Record<string, readonly unknown[]>;
  words: Record<string, readonly string[]>;
}

interface NumberColumn {
  kind: "number";
  values: Float64Array;
}

interface WordColumn {
  kind: "words";
  values: Int32Array;
  words: string[];
  numbers: Map<string, number>;
}

type Column = NumberColumn | WordColumn;

export interface Sort {
  column: string;
  descending: boolean;
}

const FIRST_CAPACITY = 256;

/** NaN and infinities come as texts, because JSON has no such numbers. */
export function numberOf(value: unknown): number {
  if (typeof value === "number") return value;
  if (value === "Infinity") return Infinity;
  if (value === "-Infinity") return -Infinity;
  return NaN;
}

export class TrialsStore {
  private readonly columns = new Map<string, Column>();
  private readonly rowOfId = new Map<number, number>();
  private capacity = FIRST_CAPACITY;
  private count = 0;
  private changes = 0;

  get rows(): number {
    return this.count;
  }

  /** Grows with each change. */
  get version(): number {
    return this.changes;
  }

  names(): string[] {
    return [...this.columns.keys()];
  }

  kindOf(name: string): "number" | "words" | null {
    return this.columns.get(name)?.kind ?? null;
  }

  wordsOf(name: string): readonly string[] {
    const column = this.columns.get(name);
    return column?.kind === "words" ? column.words : [];
  }

  rowOf(id: number): number | undefined {
    return this.rowOfId.get(id);
  }

  number(name: string, row: number): number {
    const column = this.columns.get(name);
    return column?.kind === "number" ? column.values[row]! : NaN;
  }

  word(name: string, row: number): string | null {
    const column = this.columns.get(name);
    if (column?.kind !== "words") return null;
    const word = column.values[row]!;
    return word < 0 ? null : column.words[word]!;
  }

  /** The value of a cell: null where it is not known. */
  cell(name: string, row: number): number | string | null {
    const column = this.columns.get(name);
    if (column === undefined) return null;
    if (column.kind === "words") return this.word(name, row);
    const value = column.values[row]!;
    return Number.isNaN(value) ? null : value;
  }

  /** Takes over the rows of an answer: trials that are there already are overwritten. */
  merge(slice: Slice): void {
    const ids = slice.columns["id"];
    if (ids === undefined || ids.length === 0) return;
    const rows = ids.map((id) => this.rowFor(numberOf(id)));
    for (const [name, values] of Object.entries(slice.columns)) {
      const words = slice.words[name];
      if (words === undefined) this.mergeNumbers(name, values, rows);
      else this.mergeWords(name, values, words, rows);
    }
    ++this.changes;
  }

  /** Takes over figures of running trials; those of trials that are not known are left out. */
  mergeLive(columns: Record<string, readonly unknown[]>): void {
    const rows = (columns["trial_id"] ?? []).map((id) => this.rowOfId.get(numberOf(id)));
    let changed = false;
    for (const [name, values] of Object.entries(columns)) {
      const column = this.columns.get(name);
      if (column?.kind !== "number" || name === "id" || name === "number") continue;
      rows.forEach((row, i) => {
        const value = numberOf(values[i]);
        if (row === undefined || Object.is(column.values[row], value)) return;
        column.values[row] = value;
        changed = true;
      });
    }
    if (changed) ++this.changes;
  }

  /** Those of the rows that meet all conditions, in their order. A condition on a column that is not there is met by none. */
  filter(conditions: readonly Condition[], of: Uint32Array = this.all()): Uint32Array {
    const rows = of.slice();
    let left = rows.length;
    for (const condition of conditions) left = this.keep(rows, left, condition);
    return rows.subarray(0, left);
  }

  /** The rows in order. What is not known comes last, whatever the direction; where two are equal, the newer trial comes first. */
  sorted(sort: Sort, of: Uint32Array = this.all()): Uint32Array {
    const rows = of.slice();
    const column = this.columns.get(sort.column);
    const numbers = this.columns.get("number");
    const newest = numbers?.kind === "number" ? numbers.values : new Float64Array(this.count);
    const keys = column === undefined ? new Float64Array(this.count) : sortKeys(column, this.count);
    const sign = sort.descending ? -1 : 1;
    let known = 0;
    const unknown: number[] = [];
    for (const row of of) {
      if (Number.isNaN(keys[row]!)) unknown.push(row);
      else rows[known++] = row;
    }
    const later = (a: number, b: number) => newest[b]! - newest[a]!;
    const order = (a: number, b: number) => {
      const x = keys[a]!;
      const y = keys[b]!;
      if (x === y) return later(a, b);
      return x < y ? -sign : sign;
    };
    const found = rows.subarray(0, known);
    // As they were read, which is the usual order: a typed array is sorted in full also then.
    if (!isInOrder(found, order)) found.sort(order);
    rows.set(unknown.sort(later), known);
    return rows;
  }

  private all(): Uint32Array {
    const rows = new Uint32Array(this.count);
    for (let row = 0; row < rows.length; ++row) rows[row] = row;
    return rows;
  }

  private rowFor(id: number): number {
    const found = this.rowOfId.get(id);
    if (found !== undefined) return found;
    const row = this.count++;
    this.rowOfId.set(id, row);
    if (this.count > this.capacity) this.grow();
    return row;
  }

  private grow(): void {
    while (this.capacity < this.count) this.capacity *= 2;
    for (const column of this.columns.values()) {
      if (column.kind === "number") column.values = grown(column.values, new Float64Array(this.capacity), NaN);
      else column.values = grown(column.values, new Int32Array(this.capacity), -1);
    }
  }

  private mergeNumbers(name: string, values: readonly unknown[], rows: readonly number[]): void {
    const column = this.columns.get(name) ?? this.add(name, {kind: "number", values: filled(this.capacity)});
    rows.forEach((row, i) => {
      const value = numberOf(values[i]);
      if (column.kind === "number") column.values[row] = value;
      else column.values[row] = Number.isNaN(value) ? -1 : wordNumber(column, String(value));
    });
  }

  private mergeWords(name: string, values: readonly unknown[], words: readonly string[],
                     rows: readonly number[]): void {
    const column = this.wordColumn(name);
    const numbers = words.map((word) => wordNumber(column, word));
    rows.forEach((row, i) => {
      const value = values[i];
      column.values[row] = typeof value === "number" ? (numbers[value] ?? -1) : -1;
    });
  }

  /** A choice may have had numbers alone so far. */
  private wordColumn(name: string): WordColumn {
    const found = this.columns.get(name);
    if (found?.kind === "words") return found;
    const column: WordColumn = {kind: "words", values: new Int32Array(this.capacity).fill(-1), words: [],
                                numbers: new Map()};
    found?.values.forEach((value, row) => {
      if (!Number.isNaN(value)) column.values[row] = wordNumber(column, String(value));
    });
    this.columns.set(name, column);
    return column;
  }

  private add(name: string, column: Column): Column {
    this.columns.set(name, column);
    return column;
  }

  private keep(rows: Uint32Array, count: number, condition: Condition): number {
    const column = this.columns.get(condition.column);
    if (column === undefined) return 0;
    if (condition.kind === "range") return keepRange(rows, count, column, condition.low, condition.high);
    return column.kind === "number" ? 0 : keepWords(rows, count, column, wantedWords(column, condition));
  }
}

function isInOrder(rows: Uint32Array, order: (a: number, b: number) => number): boolean {
  for (let i = 1; i < rows.length; ++i) if (order(rows[i - 1]!, rows[i]!) > 0) return false;
  return true;
}

function filled(capacity: number): Float64Array {
  return new Float64Array(capacity).fill(NaN);
}

function grown<T extends Float64Array | Int32Array>(old: T, fresh: T, none: number): T {
  fresh.fill(none);
  fresh.set(old);
  return fresh;
}

function wordNumber(column: WordColumn, word: string): number {
  const found = column.numbers.get(word);
  if (found !== undefined) return found;
  column.words.push(word);
  column.numbers.set(word, column.words.length - 1);
  return column.words.length - 1;
}

function sortKeys(column: Column, count: number): Float64Array {
  if (column.kind === "number") return column.values;
  const order = column.words.map((_, i) => i).sort((a, b) => compareWords(column.words[a]!, column.words[b]!));
  const rank = new Float64Array(column.words.length);
  order.forEach((word, place) => (rank[word] = place));
  const keys = new Float64Array(count);
  for (let row = 0; row < count; ++row) keys[row] = column.values[row]! < 0 ? NaN : rank[column.values[row]!]!;
  return keys;
}

function compareWords(a: string, b: string): number {
  const difference = Number(a) - Number(b);
  if (difference !== 0 && !Number.isNaN(difference)) return difference;
  return a < b ? -1 : a > b ? 1 : 0;
}

// Conditions are met by chance: a row is written in any case, and counts if it meets them, so that no branch is guessed wrongly.

function keepRange(rows: Uint32Array, count: number, column: Column, low: number, high: number): number {
  if (column.kind === "words") {
    const wanted = new Uint8Array(column.words.length + 1);
    column.words.forEach((word, i) => (wanted[i] = Number(word) >= low && Number(word) <= high ? 1 : 0));
    return keepWords(rows, count, column, wanted);
  }
  const {values} = column;
  let left = 0;
  for (let i = 0; i < count; ++i) {
    const row = rows[i]!;
    const value = values[row]!;
    rows[left] = row;
    left += Number(value >= low) & Number(value <= high);
  }
  return left;
}

/** Which words of the column meet the condition; the last place stands for rows without a word. */
function wantedWords(column: WordColumn, condition: Exclude<Condition, {kind: "range"}>): Uint8Array {
  const wanted = new Uint8Array(column.words.length + 1);
  if (condition.kind === "words") {
    for (const word of condition.words) {
      const number = word === null ? column.words.length : column.numbers.get(word);
      if (number !== undefined) wanted[number] = 1;
    }
  } else {
    const text = condition.text.toLowerCase();
    column.words.forEach((word, i) => (wanted[i] = word.toLowerCase().includes(text) ? 1 : 0));
  }
  return wanted;
}

function keepWords(rows: Uint32Array, count: number, column: WordColumn, wanted: Uint8Array): number {
  const {values} = column;
  const none = wanted.length - 1;
  let left = 0;
  for (let i = 0; i < count; ++i) {
    const row = rows[i]!;
    const word = values[row]!;
    rows[left] = row;
    left += wanted[word < 0 ? none : word]!;
  }
  return left;
}
