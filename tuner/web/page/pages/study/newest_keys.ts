import {useLayoutEffect, useMemo, useState} from "react";

import {type Key, useKeys} from "../../keys";

/** Registers keys once; what they do is that of the newest drawing. */
export function useNewestKeys(keys: readonly Key[]): void {
  const [newest] = useState({keys});
  useLayoutEffect(() => {
    newest.keys = keys;
  });
  const names = keys.map(({key, does}) => `${key}\n${does}`).join("\n\n");
  useKeys(useMemo(
    () => keys.map(({key, does}) => ({key, does, run: () => newest.keys.find((one) => one.key === key)?.run()})),
    [names, newest], // eslint-disable-line react-hooks/exhaustive-deps
  ));
}
