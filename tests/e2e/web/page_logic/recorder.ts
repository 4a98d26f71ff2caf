// A canvas that keeps what is painted on it as lines of text: paths, and what they are painted with where that has changed.

const MEASURED_PX = 7;
const PATH: Record<string, string> = {moveTo: "M", lineTo: "L", arc: "arc", rect: "rect", closePath: "Z"};
type State = Record<string, unknown>;

/** A path that painters make for themselves. */
class RecordedPath {
  steps: string[] = [];
}

for (const [name, sign] of Object.entries(PATH)) {
  Object.defineProperty(RecordedPath.prototype, name, {
    value(this: RecordedPath, ...numbers: unknown[]) {
      this.steps.push([sign, ...numbers.map(text)].join(" "));
    },
  });
}

function text(value: unknown): string {
  if (typeof value === "number") return String(Math.round(value * 10) / 10 + 0);
  if (Array.isArray(value)) return `[${value.map(text).join(" ")}]`;
  return value instanceof RecordedPath ? value.steps.join(" ") : JSON.stringify(value);
}

export class Recorder {
  private readonly lines: string[] = [];
  private path: string[] = [];
  private state: State = {};
  private painted: State = {};
  private readonly saved: State[] = [];

  /** What `paint` has put on the canvas. */
  static of(paint: (context: CanvasRenderingContext2D) => void): string {
    const recorder = new Recorder();
    const real = window.Path2D;
    window.Path2D = RecordedPath as unknown as typeof Path2D;
    try {
      paint(recorder.context());
    } finally {
      window.Path2D = real;
    }
    return recorder.lines.map((line) => line + "\n").join("");
  }

  private context(): CanvasRenderingContext2D {
    return new Proxy({}, {
      get: (_, name: string) => this.state[name] ?? ((...given: unknown[]) => this.call(name, given)),
      set: (_, name: string, value) => {
        this.state[name] = value;
        return true;
      },
    }) as CanvasRenderingContext2D;
  }

  private call(name: string, given: readonly unknown[]): unknown {
    if (name in PATH) {
      this.path.push([PATH[name], ...given.map(text)].join(" "));
    } else if (name === "beginPath") {
      this.path = [];
    } else if (name === "save") {
      this.saved.push({...this.state});
    } else if (name === "restore") {
      this.state = this.saved.pop() ?? {};
      this.lines.push("restore");
    } else if (name === "setLineDash") {
      this.state["dash"] = given[0];
    } else if (name === "measureText") {
      return {width: MEASURED_PX * String(given[0]).length};
    } else {
      this.tellState(name);
      const of = ["fill", "stroke", "clip"].includes(name) && given.length === 0 ? [...this.path] : given.map(text);
      this.lines.push([name, ...of].join(" "));
    }
    return undefined;
  }

  /** What this call is painted with, where that is other than for the call before. */
  private tellState(name: string): void {
    const strokes = name.startsWith("stroke");
    const matters = ["globalAlpha", ...(strokes ? ["strokeStyle", "lineWidth", "dash"] : ["fillStyle"]), ...(name.endsWith("Text") ? ["font"] : [])];
    for (const one of matters) {
      if (this.state[one] === undefined || text(this.state[one]) === text(this.painted[one])) continue;
      this.painted[one] = this.state[one];
      this.lines.push(`  ${one} ${text(this.state[one])}`);
    }
  }
}
