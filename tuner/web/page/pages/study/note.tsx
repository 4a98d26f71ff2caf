// The note on a study or trial: shown as it was written, changed in a dialog.

import {type FormEvent, useState} from "react";

import {visible} from "../../format";
import {Dialog} from "../../parts/dialog";
import {send} from "../../store";

interface NoteProps {
  text: string;
  /** Where a new one is sent; null: this person may not. */
  path: string | null;
}

export function Note({text, path}: NoteProps) {
  const [editing, setEditing] = useState(false);
  if (text === "" && path === null) return null;
  return (
    <div className="note-line">
      {text !== "" && <p className="note"><bdi>{visible(text, true)}</bdi></p>}
      {path !== null && (
        <button type="button" className="plain" onClick={() => setEditing(true)}>
          {text === "" ? "Write a note" : "Change the note"}
        </button>
      )}
      {editing && path !== null && <Editor text={text} path={path} onClose={() => setEditing(false)} />}
    </div>
  );
}

function Editor({text, path, onClose}: {text: string; path: string; onClose: () => void}) {
  const [typed, setTyped] = useState(text);
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<string | null>(null);
  const submit = (event: FormEvent) => {
    event.preventDefault();
    setBusy(true);
    send(path, {text: typed}).then(onClose, (refused: Error) => {
      setBusy(false);
      setError(refused.message);
    });
  };
  return (
    <Dialog title="Note" onClose={onClose}>
      <form onSubmit={submit}>
        <textarea className="note-text" rows={8} value={typed} autoFocus aria-label="Note"
                  onChange={(event) => setTyped(event.target.value)} />
        {error !== null && <p role="alert" className="problem">{error}</p>}
        <div className="dialog-buttons">
          <button type="button" onClick={onClose}>Leave it as it is</button>
          <button type="submit" className="primary" disabled={busy}>Save</button>
        </div>
      </form>
    </Dialog>
  );
}
