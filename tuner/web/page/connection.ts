// One stream of events, and what replaces it while there is none: polling the overview.

import {at} from "./base";
import type {Changed, Hello, LiveFigures, Overview, Values} from "./contract";

const FIRST_PAUSE_MS = 1000;
const LONGEST_PAUSE_MS = 30_000;
const POLL_MS = 2000;
const NOT_MODIFIED = 304;
/** The service says something each 15 s: after so long nobody is there. */
const SILENCE_MS = 45_000;

export type Liveness =
  | {is: "connecting"}
  | {is: "live"}
  | {is: "polling"}
  | {is: "lost"; since: number}
  | {is: "refused"}
  | {is: "hidden"}
  /** Nothing changes: it is a file with what was known then. */
  | {is: "record"; at: number};

export interface Events {
  changed(event: Changed): void;
  values(event: Values): void;
  live(event: LiveFigures): void;
  /** All that is shown has to be read again: another incarnation of the service, or too much has changed. */
  resync(): void;
  /** Asked for while there is no stream. */
  overview(overview: Overview): void;
  liveness(state: Liveness): void;
  /** Another incarnation of the service has answered. */
  restarted(): void;
  /** The session has ended. */
  loggedOut(): void;
}

export class Connection {
  private source: EventSource | null = null;
  private cursor: string | null = null;
  private incarnation: string | null = null;
  /** Of the overview that was asked for last. */
  private revision: number | null = null;
  /** By which the service says that it is still that one; null: it was not asked for since there was a stream. */
  private tag: string | null = null;
  private heard = Date.now();
  private pause = FIRST_PAUSE_MS;
  private retry: number | undefined;
  private poll: number | undefined;
  private silence: number | undefined;
  private polling = false;
  private running = false;
  private readonly online = () => this.again();
  private state: Liveness = {is: "connecting"};

  constructor(private readonly events: Events) {}

  start(): void {
    window.addEventListener("online", this.online);
    this.silence = window.setInterval(() => this.watchSilence(), 1000);
    this.heard = Date.now();
    this.pause = FIRST_PAUSE_MS;
    this.running = true;
    this.tag = null;
    this.state = {is: "connecting"};
    this.events.liveness(this.state);
    this.open();
  }

  stop(): void {
    this.running = false;
    window.removeEventListener("online", this.online);
    window.clearInterval(this.silence);
    window.clearTimeout(this.poll);
    this.poll = undefined;
    this.close();
  }

  private tell(state: Liveness): void {
    if (JSON.stringify(state) === JSON.stringify(this.state)) return;
    this.state = state;
    this.events.liveness(state);
  }

  private hear(): void {
    this.heard = Date.now();
    this.tell({is: this.source?.readyState === EventSource.OPEN ? "live" : "polling"});
  }

  private open(): void {
    this.close();
    const after = this.cursor === null ? "" : "?after=" + encodeURIComponent(this.cursor);
    const source = new EventSource(at("/api/view/events" + after));
    this.source = source;
    const on = <T>(name: string, take: (data: T) => void) =>
      source.addEventListener(name, (event) => {
        const data = JSON.parse((event as MessageEvent<string>).data || "{}") as T;
        this.cursor = (event as MessageEvent).lastEventId || this.cursor;
        this.hear();
        take(data);
      });
    on<Hello>("hello", (hello) => this.welcome(hello));
    on<Changed>("changed", (changed) => this.events.changed(changed));
    on<Values>("values", (values) => this.events.values(values));
    on<LiveFigures>("live", (live) => this.events.live(live));
    on("resync", () => this.events.resync());
    on("alive", () => undefined);
    // A browser tries again by itself after a broken line, but never after an answer that is no stream, such as a
    // proxy's 502 or the 503 of a full service: so trying again is ours in both cases.
    source.onerror = () => this.later();
  }

  private welcome(hello: Hello): void {
    this.pause = FIRST_PAUSE_MS;
    window.clearTimeout(this.poll);
    this.poll = undefined;
    this.tag = null;
    this.tell({is: "live"});
    this.meet(hello.incarnation);
  }

  /** Whether this is another service than the one before, which is then told. */
  private meet(incarnation: string): boolean {
    const other = this.incarnation !== null && this.incarnation !== incarnation;
    this.incarnation = incarnation;
    if (other) this.events.restarted();
    return other;
  }

  private close(): void {
    this.source?.close();
    this.source = null;
    window.clearTimeout(this.retry);
    this.retry = undefined;
  }

  private later(): void {
    this.close();
    this.retry = window.setTimeout(() => this.open(), this.pause);
    this.pause = Math.min(this.pause * 2, LONGEST_PAUSE_MS);
    if (this.poll === undefined) this.pollSoon(0);
  }

  private again(): void {
    if (this.source?.readyState === EventSource.OPEN) return;
    this.pause = FIRST_PAUSE_MS;
    this.open();
  }

  private pollSoon(in_ms: number): void {
    this.poll = window.setTimeout(() => void this.pollOnce(), in_ms);
  }

  private async pollOnce(): Promise<void> {
    if (this.polling) return;
    this.polling = true;
    try {
      const headers: Record<string, string> = this.tag === null ? {} : {"If-None-Match": this.tag};
      const answer = await fetch(at("/api/view/overview"), {cache: "no-store", headers});
      const overview = answer.ok ? ((await answer.json()) as Overview) : null;
      const waited = this.running && this.source?.readyState !== EventSource.OPEN;
      if (overview !== null) {
        if (waited) this.take(overview, answer.headers.get("ETag"));
      } else if (answer.status === NOT_MODIFIED) {
        if (waited) this.hear();
      } else {
        this.tag = null; // others may have failed to read it, too: it is given to them again
        if (this.running && answer.status === 401) {
          this.events.loggedOut();
        } else if (this.running && answer.status === 403) {
          this.heard = Date.now();
          this.tell({is: "refused"});
        }
      }
    } catch {
      this.tag = null; // nobody is there: watchSilence says so
    } finally {
      this.polling = false;
    }
    if (this.poll !== undefined) this.pollSoon(POLL_MS);
  }

  private take(overview: Overview, tag: string | null): void {
    const before = this.revision;
    this.revision = overview.revision;
    this.hear();
    this.events.overview(overview);
    this.tag = tag;
    if (!this.meet(overview.incarnation) && before !== overview.revision) this.events.resync();
  }

  private watchSilence(): void {
    if (Date.now() - this.heard < SILENCE_MS) return;
    if (this.state.is !== "lost") this.tell({is: "lost", since: this.heard / 1000});
    if (this.source?.readyState === EventSource.OPEN) this.later();
  }
}
