// Below which path the service is: none, or what a proxy adds. Our addresses begin with "/" and know nothing of it.

/** Read while the bundle runs for the first time: later nobody knows which script it was. */
const script = document.currentScript instanceof HTMLScriptElement ? document.currentScript.src : "";

export const base = script ? new URL(script).pathname.replace(/\/ui-assets\/[^/]*$/, "") : "";

/** An address of ours, as the browser has to ask for it. */
export function at(path: string): string {
  return base + path;
}

/** The bundle's file, whose name tells its content. */
export const bundleName = script.slice(script.lastIndexOf("/") + 1);
