// The smallest runner: a case that throws has failed. page_logic_test.py runs them in a browser.

export interface Outcome {
  name: string;
  /** What went wrong; null: nothing. */
  error: string | null;
}

const cases: {name: string; run: () => void}[] = [];

export function test(name: string, run: () => void): void {
  cases.push({name, run});
}

export function outcomes(): Outcome[] {
  return cases.map(({name, run}) => {
    try {
      run();
      return {name, error: null};
    } catch (error) {
      return {name, error: String((error as Error).message)};
    }
  });
}

/** JSON with what it has no words for. */
function text(value: unknown): string {
  return JSON.stringify(value, (_, one: unknown) => {
    if (ArrayBuffer.isView(one)) return [...(one as unknown as Iterable<number>)];
    if (typeof one === "number" && !Number.isFinite(one)) return `the number ${one}`;
    return one === undefined ? "nothing" : one;
  });
}

export function equal(got: unknown, wanted: unknown): void {
  if (text(got) !== text(wanted)) throw new Error(`got    ${text(got)}\nwanted ${text(wanted)}`);
}

export function check(holds: boolean, what: string): void {
  if (!holds) throw new Error(what);
}
