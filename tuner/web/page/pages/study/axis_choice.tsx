// What x is in pictures of curves. It stands in the address, and so does what they are zoomed to.

import {useQuery} from "../../url";
import {type XAxis, X_AXES, X_LABELS, isXAxis} from "./curve_set";

export function useAxis(): [XAxis, (axis: XAxis) => void] {
  const [text, setText] = useQuery("x", "step");
  return [isXAxis(text) ? text : "step", setText];
}

interface AxisChoiceProps {
  axis: XAxis;
  onAxis: (axis: XAxis) => void;
  /** Another axis shows all of it. */
  onView: (view: null) => void;
  without?: XAxis | undefined;
}

export function AxisChoice({axis, onAxis, onView, without}: AxisChoiceProps) {
  return (
    <label className="tool">
      x{" "}
      <select value={axis} onChange={(event) => { onView(null); onAxis(event.target.value as XAxis); }}>
        {X_AXES.filter((one) => one !== without).map((one) => <option key={one} value={one}>{X_LABELS[one]}</option>)}
      </select>
    </label>
  );
}
