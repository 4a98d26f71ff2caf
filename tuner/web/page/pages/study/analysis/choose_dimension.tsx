import {visible} from "../../../format";
import type {Dimension} from "./dimensions";

export function ChooseDimension({label, of, chosen, onChoose}: {label: string; of: readonly Dimension[]; chosen: Dimension;
                                                               onChoose: (column: string) => void}) {
  return (
    <label className="tool">
      {label}{" "}
      <select value={chosen.column} onChange={(event) => onChoose(event.target.value)}>
        {of.map((one) => <option key={one.column} value={one.column}>{visible(one.label)}</option>)}
      </select>
    </label>
  );
}
