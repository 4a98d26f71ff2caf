// The output of a trial's processes as it grows: what is new is asked for each second while somebody looks.

import {at} from "../../base";
import {toLogin} from "../../store";

const EACH_MS = 1000;
const AFTER_ERROR_MS = 5000;
/** Where several machines print, all is sent each time: so much of it costs another second. */
const WHOLE_A_SECOND = 1 << 16;
/** So much is kept; the file on the machine has the rest. */
export const MOST_KEPT = 1 << 20;

export interface Output {
  text: string;
  /** So many bytes of the beginning are not here. */
  skipped: number;
  error: string | null;
  /** Something has come from the service. */
  read: boolean;
}

export class LogReader {
  output: Output = {text: "", skipped: 0, error: null, read: false};
  /** A cursor of the service's. */
  private after: string | null = null;
  private pause = EACH_MS;
  private decoder = new TextDecoder();
  private timer: number | undefined;
  private stopped = false;

  constructor(private readonly trial: number, private readonly rank: number | null,
              private readonly tell: () => void, private readonly ended: () => boolean) {}

  start(): () => void {
    const look = () => {
      if (!document.hidden && this.timer !== undefined) this.soon(0);
    };
    document.addEventListener("visibilitychange", look);
    void this.read();
    return () => {
      this.stopped = true;
      window.clearTimeout(this.timer);
      document.removeEventListener("visibilitychange", look);
    };
  }

  private soon(ms: number): void {
    window.clearTimeout(this.timer);
    this.timer = window.setTimeout(() => {
      // Nobody looks: once the tab is shown again it goes on.
      if (document.hidden) return;
      void this.read();
    }, ms);
  }

  private async read(): Promise<void> {
    this.timer = undefined;
    // Before the question: what an ended trial has printed is whole in the answer.
    const last = this.ended();
    try {
      await this.ask();
    } catch (error) {
      this.set({error: error instanceof Error ? error.message : String(error)});
    }
    if (this.stopped) return;
    if (!last || this.output.error !== null) this.soon(this.output.error === null ? this.pause : AFTER_ERROR_MS);
  }

  /** For what has come since it was asked before. */
  private async ask(): Promise<void> {
    const keys = [...(this.rank === null ? [] : [`rank=${this.rank}`]), ...(this.after === null ? [] : [`after=${encodeURIComponent(this.after)}`])];
    const query = keys.length > 0 ? `?${keys.join("&")}` : "";
    const answer = await fetch(at(`/api/trials/${this.trial}/output${query}`), {cache: "no-store"});
    const body = await answer.arrayBuffer();
    if (this.stopped) return;
    if (answer.status === 401) toLogin();
    if (!answer.ok) {
      this.set({error: errorOf(new TextDecoder().decode(body), answer.status)});
      return;
    }
    const next = answer.headers.get("X-Next");
    if (next === null) {
      this.after = null;
      const text = new TextDecoder().decode(body);
      this.pause = EACH_MS * (1 + text.length / WHOLE_A_SECOND);
      this.set({text, skipped: 0, error: null, read: true});
      return;
    }
    this.pause = EACH_MS;
    const start = Number(answer.headers.get("X-Start") ?? "0");
    const goesOn = this.after !== null && start > 0;
    // A letter may have been cut in two.
    if (!goesOn) this.decoder = new TextDecoder();
    const text = this.decoder.decode(body, {stream: true});
    const all = goesOn ? this.output.text + text : text;
    const cut = Math.max(0, all.length - MOST_KEPT);
    this.set({text: all.slice(cut), skipped: (goesOn ? this.output.skipped : 0) + cut, error: null, read: true});
    this.after = next;
  }

  private set(changes: Partial<Output>): void {
    this.output = {...this.output, ...changes};
    this.tell();
  }
}

function errorOf(text: string, status: number): string {
  try {
    const body = JSON.parse(text) as {error?: unknown};
    if (typeof body.error === "string") return body.error;
  } catch {
    // Not from the service itself.
  }
  return `the service answered ${status}`;
}
