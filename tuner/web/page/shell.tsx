// What is around every page: navigation, search, whether it is live, help.

import {useEffect, useMemo, useRef, useState} from "react";

import {clock, day} from "./format";
import {Help} from "./parts/help";
import {Link} from "./parts/link";
import {LiveRegion} from "./parts/live_region";
import {Name} from "./parts/name";
import {Search} from "./parts/search";
import {UndoBar} from "./parts/undo_bar";
import {ROUTES} from "./pages/routes";
import {record} from "./record/record";
import {type Key, useKeys} from "./keys";
import {say} from "./spoken";
import {useLiveness, useOverview} from "./store";
import {switchTheme, useTheme} from "./theme";
import {addressOf, go, usePath} from "./url";

export function Shell() {
  const path = usePath();
  const trimmed = path.replace(/\/+$/, "");
  const main = useRef<HTMLElement>(null);
  const [help, setHelp] = useState(false);
  const [searching, setSearching] = useState(false);
  const route = ROUTES.find((one) => one.pattern.test(trimmed));
  const groups = (route?.pattern.exec(trimmed) ?? []).slice(1);
  const keys = useMemo<readonly Key[]>(() => [
    {key: "?", does: "this list", run: () => setHelp(true)},
    {key: "/", does: "search for a study, a trial, a node", run: () => setSearching(true)},
    ...(record !== null ? [] : [
      {key: "g p", does: "go to Pool", run: () => go(addressOf.pool())},
      {key: "g c", does: "go to Cluster", run: () => go(addressOf.cluster())},
    ]),
  ], []);
  useKeys(keys);
  // The title says where one is; a screen reader hears it, and the focus starts at the page's top.
  const first = useRef(true);
  useEffect(() => {
    document.title = route ? `${route.title} · Espalier` : "Espalier";
    if (!first.current) {
      main.current?.focus();
      say(route?.title ?? "No such page");
    }
    first.current = false;
  }, [trimmed]);
  return (
    <>
      <a className="skip" href="#main" onClick={(event) => { event.preventDefault(); main.current?.focus(); }}>
        To the page
      </a>
      <header className="top">
        <Link to={addressOf.pool()} className="brand">Espalier</Link>
        <Navigation path={trimmed} />
        <button type="button" className="search-open" onClick={() => setSearching(true)}>
          Search <kbd>/</kbd>
        </button>
        <Live />
        <ThemeSwitch />
        <button type="button" className="round" aria-label="Keys and help" onClick={() => setHelp(true)}>?</button>
      </header>
      <main id="main" ref={main} tabIndex={-1}>
        {route ? route.page(groups) : <NoPage path={path} />}
      </main>
      <UndoBar />
      <LiveRegion />
      {help && <Help onClose={() => setHelp(false)} />}
      {searching && <Search onClose={() => setSearching(false)} />}
    </>
  );
}

function Navigation({path}: {path: string}) {
  const study = /^\/ui\/studies\/(\d+)/.exec(path);
  const {data} = useOverview();
  const row = study && data?.studies.find((one) => one.id === Number(study[1]));
  return (
    <nav aria-label="Pages">
      {record === null && <Link to={addressOf.pool()} current={path === ""}>Pool</Link>}
      {record === null && <Link to={addressOf.cluster()} current={path === "/ui/cluster"}>Cluster</Link>}
      {row && <Link to={addressOf.study(row.id)} current={/\d$/.test(path) && !path.includes("trials")}><Name of={row.name} most={24} /></Link>}
    </nav>
  );
}

function Live() {
  const state = useLiveness();
  const text =
    state.is === "live" ? "live"
    : state.is === "polling" ? "live, each 2 s"
    : state.is === "lost" ? `not live since ${clock(state.since)}`
    : state.is === "refused" ? "no longer allowed to look"
    : state.is === "record" ? toldOfRecord(state.at)
    : "connecting";
  const kind = state.is === "live" || state.is === "polling" ? "good" : state.is === "lost" || state.is === "refused" ? "bad" : "muted";
  return (
    <span className={`live ${kind}`} role={kind === "bad" ? "alert" : undefined}>
      <span aria-hidden="true">{kind === "good" ? "●" : kind === "bad" ? "▲" : "○"}</span> {text}
    </span>
  );
}

function toldOfRecord(at: number): string {
  return record?.comparison === undefined ? `record as of ${day(new Date(at * 1000))} ${clock(at)}` : "record of a simulation";
}

function ThemeSwitch() {
  const theme = useTheme();
  return (
    <button type="button" className="round" aria-label={theme === "dark" ? "Light colours" : "Dark colours"}
            onClick={switchTheme}>
      <span aria-hidden="true">◐</span>
    </button>
  );
}

function NoPage({path}: {path: string}) {
  return (
    <section className="panel">
      <h1>There is no such page</h1>
      <p><code>{path}</code> leads nowhere. <Link to={addressOf.pool()}>{record === null ? "The pool" : "The study"}</Link> is a good place to start.</p>
    </section>
  );
}
