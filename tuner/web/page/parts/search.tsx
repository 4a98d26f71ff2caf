// Search: studies and nodes by a part of their name, and "NAME 7" for a study's trial.

import {type KeyboardEvent, useId, useState} from "react";

import type {Overview} from "../contract";
import {visible} from "../format";
import {useOverview} from "../store";
import {addressOf, go} from "../url";
import {Dialog} from "./dialog";
import {Name} from "./name";

const MOST = 12;

interface Found {
  key: string;
  kind: string;
  name: string;
  to: string;
}

export function find(overview: Overview | null, text: string): Found[] {
  if (!overview) return [];
  const wanted = text.trim().toLowerCase();
  const numbered = /^(.*?)\s*(?:trial\s*)?#?(\d+)$/.exec(wanted);
  const found: Found[] = [];
  if (numbered) {
    const part = (numbered[1] ?? "").trim();
    for (const study of overview.studies) {
      if (study.name.toLowerCase().includes(part)) {
        found.push({key: `t${study.id}`, kind: "trial", name: `${study.name} ${numbered[2]}`,
                    to: addressOf.trial(study.id, Number(numbered[2]))});
      }
    }
  }
  const named: Found[] = [];
  for (const study of overview.studies) {
    if (study.name.toLowerCase().includes(wanted)) {
      named.push({key: `s${study.id}`, kind: "study", name: study.name, to: addressOf.study(study.id)});
    }
  }
  for (const node of overview.pool.nodes) {
    if (node.name.toLowerCase().includes(wanted)) {
      named.push({key: `n${node.id}`, kind: "node", name: node.name,
                  to: addressOf.cluster() + "?node=" + encodeURIComponent(node.name)});
    }
  }
  return [...named, ...found].slice(0, MOST);
}

export function Search({onClose}: {onClose: () => void}) {
  const {data} = useOverview();
  const [text, setText] = useState("");
  const [at, setAt] = useState(0);
  const list = useId();
  const found = find(data, text);
  const chosen = Math.min(at, found.length - 1);
  const open = (one: Found) => {
    onClose();
    go(one.to);
  };
  const key = (event: KeyboardEvent) => {
    if (event.key === "ArrowDown") setAt(Math.min(found.length - 1, chosen + 1));
    else if (event.key === "ArrowUp") setAt(Math.max(0, chosen - 1));
    else if (event.key === "Enter" && found[chosen]) open(found[chosen] as Found);
    else return;
    event.preventDefault();
  };
  return (
    <Dialog title="Search" onClose={onClose}>
      <input type="text" className="search" autoFocus autoComplete="off" spellCheck={false} value={text} role="combobox"
             aria-expanded="true" aria-controls={list} aria-label="Study, study and trial's number, or node"
             aria-activedescendant={found[chosen] && `${list}-${found[chosen]?.key}`}
             placeholder="study, study 7, node" onKeyDown={key}
             onChange={(event) => { setText(event.target.value); setAt(0); }} />
      <ul className="found" id={list} role="listbox" aria-label="Found">
        {found.map((one, index) => (
          <li key={one.key} id={`${list}-${one.key}`} role="option" aria-selected={index === chosen}
              onClick={() => open(one)} onPointerMove={() => setAt(index)}>
            <span className="muted">{one.kind}</span> <Name of={one.name} />
          </li>
        ))}
      </ul>
      {found.length === 0 && <p className="empty">Nothing is called “{visible(text)}”.</p>}
    </Dialog>
  );
}
