// Which columns a table shows, and in which order.

import {Dialog} from "../parts/dialog";
import {Name} from "../parts/name";
import {type ColumnChoice, moved, toggled} from "./columns";

interface ColumnChooserProps {
  choice: ColumnChoice;
  labelOf: (column: string) => string;
  onShown: (columns: string[] | null) => void;
  onClose: () => void;
}

export function ColumnChooser({choice, labelOf, onShown, onClose}: ColumnChooserProps) {
  const {shown} = choice;
  const hidden = choice.all.filter((column) => !shown.includes(column));
  return (
    <Dialog title="Columns" onClose={onClose}>
      <ul className="column-list">
        {[...shown, ...hidden].map((column) => {
          const place = shown.indexOf(column);
          const label = labelOf(column);
          return (
            <li key={column}>
              <label>
                <input type="checkbox" checked={place >= 0} onChange={() => onShown(toggled(shown, column))} />{" "}
                <Name of={label} most={40} />
              </label>
              {place >= 0 && (
                <span>
                  <button type="button" aria-label={`${label} further left`} disabled={place === 0}
                          onClick={() => onShown(moved(shown, column, -1))}>↑</button>
                  <button type="button" aria-label={`${label} further right`} disabled={place === shown.length - 1}
                          onClick={() => onShown(moved(shown, column, 1))}>↓</button>
                </span>
              )}
            </li>
          );
        })}
      </ul>
      <div className="dialog-buttons">
        <button type="button" onClick={() => onShown(null)}>As usual</button>
        <button type="button" className="primary" onClick={onClose}>Done</button>
      </div>
    </Dialog>
  );
}
