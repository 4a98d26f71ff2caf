// What a trial's processes have printed, following its end.

import {useEffect, useLayoutEffect, useMemo, useRef, useState} from "react";

import {count} from "../../format";
import {useQuery} from "../../url";
import {LogReader} from "./log_reader";
import {logText} from "./log_text";

const NEAR_PX = 24;

interface LogPaneProps {
  trial: number;
  ended: boolean;
  /** Where a launcher starts several ranks. */
  ranks: number | null;
  /** On the machine of its first slot; null: not known. */
  path: string | null;
}

export function LogPane({trial, ended, ranks, path}: LogPaneProps) {
  const [rank, setRank] = useQuery("rank", "0");
  const [follows, setFollows] = useState(true);
  const output = useOutput(trial, ranks === null ? null : Number(rank), ended);
  const text = useMemo(() => logText(output.text), [output.text]);
  const box = useRef<HTMLPreElement>(null);
  useLayoutEffect(() => {
    const element = box.current;
    if (element !== null && follows) element.scrollTop = element.scrollHeight;
  }, [text, follows]);
  const scrolled = () => {
    const element = box.current;
    if (element === null) return;
    setFollows(element.scrollTop + element.clientHeight >= element.scrollHeight - NEAR_PX);
  };
  return (
    <section className="panel log" aria-label="Log">
      <header className="panel-head">
        <h2>Log</h2>
        {ranks !== null && ranks > 1 && (
          <label>
            rank{" "}
            <select value={rank} onChange={(event) => setRank(event.target.value)}>
              {Array.from({length: ranks}, (_, i) => <option key={i}>{i}</option>)}
            </select>
          </label>
        )}
        <label>
          <input type="checkbox" checked={follows} onChange={(event) => setFollows(event.target.checked)} /> follow
        </label>
        {path !== null && <bdi className="muted path" title="on the machine of its first slot">{path}</bdi>}
      </header>
      {output.error !== null && <p className="problem" role="status">{output.error}</p>}
      {output.skipped > 0 && <p className="muted">The first {count(output.skipped)} bytes are left out here.</p>}
      <pre ref={box} onScroll={scrolled} tabIndex={0} role="region" aria-label="output">
        {text !== "" ? text : output.read ? "Nothing has been printed." : output.error === null ? "Reading …" : ""}
      </pre>
    </section>
  );
}

function useOutput(trial: number, rank: number | null, ended: boolean) {
  const [, setVersion] = useState(0);
  const isOver = useRef(ended);
  isOver.current = ended;
  const reader = useMemo(
    () => new LogReader(trial, rank, () => setVersion((version) => version + 1), () => isOver.current),
    [trial, rank],
  );
  useEffect(() => reader.start(), [reader]);
  return reader.output;
}
