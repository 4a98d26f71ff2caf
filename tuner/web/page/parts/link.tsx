import type {MouseEvent, ReactNode} from "react";

import {at} from "../base";
import {go} from "../url";

/** A link to a page of ours: a plain click stays in this document. `to` begins with a slash. */
export function Link({to, children, className, current}: {to: string; children: ReactNode; className?: string;
                                                        current?: boolean}) {
  const click = (event: MouseEvent) => {
    if (event.button || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
    event.preventDefault();
    go(to);
  };
  return <a href={at(to)} className={className} aria-current={current ? "page" : undefined} onClick={click}>{children}</a>;
}
