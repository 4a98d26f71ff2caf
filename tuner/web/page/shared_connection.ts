// A browser opens six connections to a host, for all its windows together. So one visible window holds the stream, and
// tells the others what it hears.

import {at} from "./base";
import {Connection, type Events, type Liveness} from "./connection";

const CHANNEL = at("/espalier-events");
/** Whoever leads answers within so long. */
const ANSWER_MS = 200;
const BEAT_MS = 2000;
/** A leader that is not heard of for so long is gone: frozen, or ended without a word. */
const GONE_MS = 7000;
const HIDDEN_MS = 10_000;

type Relayed = {[K in keyof Events]: {kind: "event"; name: K; argument: Parameters<Events[K]>[0] | undefined}}[keyof Events];
type Message = {kind: "who"} | {kind: "leader"; id: string; liveness: Liveness} | {kind: "bye"} | Relayed;

export class SharedConnection {
  private readonly id = Math.random().toString(36).slice(2);
  private channel: BroadcastChannel | null = null;
  private readonly connection: Connection;
  private role: "hidden" | "asking" | "leader" | "follower" = "asking";
  private liveness: Liveness = {is: "connecting"};
  private heard = 0;
  private asking: number | undefined;
  private hiding: number | undefined;

  constructor(private readonly events: Events) {
    this.connection = new Connection({
      changed: (event) => this.relay({kind: "event", name: "changed", argument: event}),
      values: (event) => this.relay({kind: "event", name: "values", argument: event}),
      live: (event) => this.relay({kind: "event", name: "live", argument: event}),
      overview: (event) => this.relay({kind: "event", name: "overview", argument: event}),
      liveness: (event) => this.relay({kind: "event", name: "liveness", argument: event}),
      resync: () => this.relay({kind: "event", name: "resync", argument: undefined}),
      restarted: () => this.relay({kind: "event", name: "restarted", argument: undefined}),
      loggedOut: () => this.relay({kind: "event", name: "loggedOut", argument: undefined}),
    });
  }

  start(): void {
    this.channel = new BroadcastChannel(CHANNEL);
    this.channel.onmessage = (event: MessageEvent<Message>) => this.take(event.data);
    document.addEventListener("visibilitychange", () => this.visibility());
    window.addEventListener("pagehide", () => this.leave());
    window.addEventListener("pageshow", (event) => event.persisted && this.ask());
    window.setInterval(() => this.beat(), BEAT_MS);
    this.ask();
    if (document.hidden) this.visibility();
  }

  private post(message: Message): void {
    this.channel?.postMessage(message);
  }

  /** What this window's stream says, to itself and to the others. */
  private relay(event: Relayed): void {
    this.post(event);
    this.apply(event);
  }

  private apply(event: Relayed): void {
    if (event.name === "liveness") this.liveness = event.argument as Liveness;
    (this.events[event.name] as (argument: unknown) => void)(event.argument);
  }

  private ask(): void {
    this.role = "asking";
    this.post({kind: "who"});
    window.clearTimeout(this.asking);
    // Windows that lose a leader at once do not all become the next one.
    this.asking = window.setTimeout(() => this.lead(), ANSWER_MS * (1 + Math.random()));
  }

  private lead(): void {
    this.role = "leader";
    this.post({kind: "leader", id: this.id, liveness: this.liveness});
    this.connection.start();
  }

  private take(message: Message): void {
    if (this.role === "hidden") return;
    if (message.kind === "who") {
      if (this.role === "leader") this.post({kind: "leader", id: this.id, liveness: this.liveness});
    } else if (message.kind === "leader") {
      // Of two the lesser stays.
      if (this.role === "leader" && message.id > this.id) this.post({kind: "leader", id: this.id, liveness: this.liveness});
      else this.follow(message.liveness);
    } else if (message.kind === "bye") {
      if (this.role === "follower") this.ask();
    } else if (this.role === "follower") {
      this.heard = Date.now();
      this.apply(message);
    }
  }

  private follow(liveness: Liveness): void {
    if (this.role === "leader") this.connection.stop();
    window.clearTimeout(this.asking);
    const before = this.role;
    this.role = "follower";
    this.heard = Date.now();
    // What was said while nobody listened here.
    if (before !== "follower") this.apply({kind: "event", name: "resync", argument: undefined});
    if (JSON.stringify(liveness) !== JSON.stringify(this.liveness)) {
      this.apply({kind: "event", name: "liveness", argument: liveness});
    }
  }

  private beat(): void {
    if (this.role === "leader") this.post({kind: "leader", id: this.id, liveness: this.liveness});
    else if (this.role === "follower" && Date.now() - this.heard > GONE_MS) this.ask();
  }

  private leave(): void {
    window.clearTimeout(this.asking);
    const led = this.role === "leader";
    if (led) this.connection.stop();
    this.role = "hidden";
    if (led) this.post({kind: "bye"});
  }

  private visibility(): void {
    window.clearTimeout(this.hiding);
    if (document.hidden) {
      this.hiding = window.setTimeout(() => {
        this.leave();
        this.apply({kind: "event", name: "liveness", argument: {is: "hidden"}});
      }, HIDDEN_MS);
    } else if (this.role === "hidden") {
      // What has happened meanwhile was not heard: "connecting" has all of it read again.
      this.apply({kind: "event", name: "liveness", argument: {is: "connecting"}});
      this.ask();
    }
  }
}
