import {useEffect, useRef} from "react";

import {addRegion} from "../spoken";

/** Where a screen reader hears what is said. Each dialog has one, since what is outside of it is inert while it is open. */
export function LiveRegion() {
  const ref = useRef<HTMLDivElement>(null);
  useEffect(() => (ref.current === null ? undefined : addRegion(ref.current)), []);
  return <div className="unseen" role="status" aria-live="polite" ref={ref} />;
}
