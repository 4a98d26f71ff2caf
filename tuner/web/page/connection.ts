// One stream of events for the visible tab, and what replaces it while there is none: polling the overview.

import type {Changed, Hello, LiveFigures, Overview, Values} from "./contract";

const FIRST_PAUSE_MS = 1000;
const LONGEST_PAUSE_MS = 30_000;
const POLL_MS = 2000;
/** The service says something each 15 s: after so long nobody is there. */
const SILENCE_MS = 45_000;
const HIDDEN_MS = 10_000;

export type Liveness =
  | {is: "connecting"}
  | {is: "live"}
  | {is: "polling"}
  | {is: "lost"; since: number}
  | {is: "hidden"};

export interface Events {
  changed(event: Changed): void;
  values(event: Values): void;
  live(event: LiveFigures): void;
  /** All that is shown has to be read again: another incarnation of the service, or too much has changed. */
  resync(): void;
  /** Asked for while there is no stream. */
  overview(overview: Overview): void;
  liveness(state: Liveness): void;
}

export class Connection {
  private source: EventSource | null = null;
  private cursor: {incarnation: string; revision: number} | null = null;
  private polled: {incarnation: string; revision: number} | null = null;
  private heard = Date.now();
  private pause = FIRST_PAUSE_MS;
  private retry: number | undefined;
  private poll: number | undefined;
  private hide: number | undefined;
  private polling = false;
  private state: Liveness = {is: "connecting"};

  constructor(private readonly events: Events) {}

  start(): void {
    document.addEventListener("visibilitychange", () => this.visibility());
    window.addEventListener("online", () => this.again());
    window.setInterval(() => this.watchSilence(), 1000);
    this.open();
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
    const after = this.cursor ? `?after=${this.cursor.incarnation}:${this.cursor.revision}` : "";
    const source = new EventSource("/api/view/events" + after);
    this.source = source;
    const on = <T>(name: string, take: (data: T) => void) =>
      source.addEventListener(name, (event) => {
        const data = JSON.parse((event as MessageEvent<string>).data || "{}") as T;
        this.follow((event as MessageEvent).lastEventId);
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

  private follow(id: string): void {
    const [incarnation, revision] = id.split(":");
    if (incarnation && revision) this.cursor = {incarnation, revision: Number(revision)};
  }

  private welcome(hello: Hello): void {
    const known = this.cursor ?? this.polled;
    const other = known !== null && known.incarnation !== hello.incarnation;
    this.cursor = {incarnation: hello.incarnation, revision: hello.revision};
    this.pause = FIRST_PAUSE_MS;
    window.clearTimeout(this.poll);
    this.poll = undefined;
    this.tell({is: "live"});
    if (other) this.restarted();
  }

  /** A service that was upgraded has other pages. */
  private restarted(): void {
    this.events.resync();
    const own = document.querySelector<HTMLScriptElement>("script[src]")?.getAttribute("src");
    void fetch("/", {cache: "no-store"})
      .then((answer) => (answer.ok ? answer.text() : ""))
      .then((page) => {
        if (own && page.includes("/ui-assets/app.") && !page.includes(own)) location.reload();
      })
      .catch(() => undefined);
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
    if (document.hidden || this.source?.readyState === EventSource.OPEN) return;
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
      const answer = await fetch("/api/view/overview", {cache: "no-store"});
      if (answer.ok) {
        const overview = (await answer.json()) as Overview;
        if (this.source?.readyState !== EventSource.OPEN) this.take(overview);
      }
    } catch {
      // Nobody is there: watchSilence says so.
    } finally {
      this.polling = false;
    }
    if (this.poll !== undefined) this.pollSoon(POLL_MS);
  }

  private take(overview: Overview): void {
    const before = this.polled ?? this.cursor;
    this.polled = {incarnation: overview.incarnation, revision: overview.revision};
    this.hear();
    this.events.overview(overview);
    if (before && before.incarnation !== overview.incarnation) this.restarted();
    else if (!before || before.revision !== overview.revision) this.events.resync();
  }

  private watchSilence(): void {
    if (document.hidden || Date.now() - this.heard < SILENCE_MS) return;
    if (this.state.is !== "lost") this.tell({is: "lost", since: this.heard / 1000});
    if (this.source?.readyState === EventSource.OPEN) this.later();
  }

  private visibility(): void {
    window.clearTimeout(this.hide);
    if (document.hidden) {
      this.hide = window.setTimeout(() => {
        this.close();
        window.clearTimeout(this.poll);
        this.poll = undefined;
        this.tell({is: "hidden"});
      }, HIDDEN_MS);
    } else if (this.state.is === "hidden") {
      this.heard = Date.now();
      this.pause = FIRST_PAUSE_MS;
      this.tell({is: "connecting"});
      this.open();
    }
  }
}
