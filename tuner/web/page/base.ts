// Below which path the service is: none, or what a proxy adds. Our addresses begin with "/" and know nothing of it.

import {record} from "./record/record";

/** Read while the bundle runs for the first time: later nobody knows which script it was. */
const script = document.currentScript instanceof HTMLScriptElement ? document.currentScript.src : "";

export const base = script ? new URL(script).pathname.replace(/\/ui-assets\/[^/]*$/, "") : "";

/** An address of ours, as the browser has to ask for it; in a record it is a part of the file's own. */
export function at(path: string): string {
  return record === null ? base + path : `#${path}`;
}

/** The bundle's file, whose name tells its content. */
export const bundleName = script.slice(script.lastIndexOf("/") + 1);
