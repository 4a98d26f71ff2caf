import {useState} from "react";

import {keysAreOn, turnKeys, useAllKeys} from "../keys";
import {Dialog} from "./dialog";

const IN_PICTURES: readonly (readonly [string, string])[] = [
  ["← → ↑ ↓", "the next point or lane of a picture that has the focus"],
  ["Home End", "the first and the last of them"],
  ["+ − 0", "zoom in, out, all of it; also the wheel with Ctrl, and dragging"],
  ["Enter", "open what the cursor is at"],
  ["t", "the same data as a table"],
];

export function Help({onClose}: {onClose: () => void}) {
  const keys = useAllKeys();
  const [on, setOn] = useState(keysAreOn());
  const unique = [...new Map(keys.map((key) => [key.key, key])).values()];
  return (
    <Dialog title="Keys" onClose={onClose}>
      <table className="keys">
        <thead><tr><th scope="col">Key</th><th scope="col">What it does</th></tr></thead>
        <tbody>
          {unique.map((key) => (
            <tr key={key.key}><th scope="row"><kbd>{key.key}</kbd></th><td>{key.does}</td></tr>
          ))}
          {IN_PICTURES.map(([key, does]) => (
            <tr key={key}><th scope="row"><kbd>{key}</kbd></th><td>{does}</td></tr>
          ))}
          <tr><th scope="row"><kbd>Esc</kbd></th><td>close what lies on top</td></tr>
        </tbody>
      </table>
      <label className="check">
        <input type="checkbox" checked={on}
               onChange={(event) => { turnKeys(event.target.checked); setOn(event.target.checked); }} />
        Single keys do something on this machine
      </label>
      <div className="dialog-buttons"><button type="button" className="primary" onClick={onClose}>Close</button></div>
    </Dialog>
  );
}
