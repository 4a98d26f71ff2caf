import {useEffect, useState} from "react";

import {store} from "../store";

/** The service's time, as it goes on. Still while the tab is hidden. */
export function useNow(every_ms = 1000): number {
  const [now, setNow] = useState(store.now());
  useEffect(() => {
    const timer = window.setInterval(() => {
      if (!document.hidden) setNow(store.now());
    }, every_ms);
    return () => window.clearInterval(timer);
  }, [every_ms]);
  return now;
}
