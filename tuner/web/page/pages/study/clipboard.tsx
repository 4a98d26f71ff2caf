// Copies a text: to the clipboard where the browser lets a page do so (a loopback address, or TLS), else by a dialog to copy it from.

import {useState} from "react";

import {Dialog} from "../../parts/dialog";
import {say} from "../../spoken";

/** How to copy, and what is shown meanwhile. */
export function useCopy(): [(what: string, text: string) => void, JSX.Element | null] {
  const [shown, setShown] = useState<{what: string; text: string} | null>(null);
  const [told, setTold] = useState<string | null>(null);
  const copy = (what: string, text: string) => {
    const done = () => {
      setTold(`${what} copied`);
      say(`${what} copied`);
      window.setTimeout(() => setTold(null), 2000);
    };
    // The type has no place for a browser that has none.
    const clipboard = navigator.clipboard as Clipboard | undefined;
    if (clipboard === undefined) setShown({what, text});
    else clipboard.writeText(text).then(done, () => setShown({what, text}));
  };
  const element = shown !== null ? (
    <Dialog title={shown.what} onClose={() => setShown(null)}>
      <p>This browser lets no page of this address copy: take it from here.</p>
      <textarea readOnly rows={8} cols={50} value={shown.text} aria-label={shown.what}
                onFocus={(event) => event.target.select()} autoFocus />
    </Dialog>
  ) : told !== null ? (
    <span className="told">{told}</span>
  ) : null;
  return [copy, element];
}
