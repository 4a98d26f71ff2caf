// A dialog of the browser's own: it keeps the focus in, gives it back, and Escape closes it.

import {type ReactNode, useEffect, useId, useLayoutEffect, useRef} from "react";

import {LiveRegion} from "./live_region";

export function Dialog({title, onClose, children}: {title: ReactNode; onClose: () => void; children: ReactNode}) {
  const ref = useRef<HTMLDialogElement>(null);
  const id = useId();
  const before = useRef<Element | null>(null);
  // Before anything else is typed; and the focus goes back once the dialog, outside of which nothing takes it, is gone.
  useLayoutEffect(() => {
    before.current = document.activeElement;
    ref.current?.showModal();
  }, []);
  useEffect(() => () => {
    if (before.current instanceof HTMLElement) before.current.focus();
  }, []);
  return (
    <dialog ref={ref} aria-labelledby={id} onClose={onClose}
            onClick={(event) => event.target === ref.current && onClose()}>
      <div className="dialog-body">
        <h2 id={id}>{title}</h2>
        {children}
      </div>
      <LiveRegion />
    </dialog>
  );
}

/** A plain question before something is done, and what the service said where it was refused. */
export function Question({title, children, yes, busy, error, onYes, onClose}: {
  title: ReactNode;
  children: ReactNode;
  yes: string;
  busy: boolean;
  error: string | null;
  onYes: () => void;
  onClose: () => void;
}) {
  return (
    <Dialog title={title} onClose={onClose}>
      {children}
      {error && <p role="alert" className="problem">{error}</p>}
      <div className="dialog-buttons">
        <button type="button" onClick={onClose}>Leave it as it is</button>
        <button type="button" className="primary" disabled={busy} onClick={onYes}>{yes}</button>
      </div>
    </Dialog>
  );
}
