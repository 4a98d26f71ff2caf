import {visible} from "../format";
import {UNDO_S, takeBack, usePending} from "./undo";

/** What is about to be done, with the button that takes it back. It is said when it comes, and no live region: a dialog would silence it. */
export function UndoBar() {
  const pending = usePending();
  if (pending.length === 0) return null;
  return (
    <div className="undo-bar">
      {pending.map(({key, text, error}) => (
        <p key={key}>
          {error === null ? (
            <>
              {text} in {UNDO_S} s, unless this page is closed before.{" "}
              <button type="button" className="primary" onClick={() => takeBack(key)}>Undo</button>
            </>
          ) : (
            <>
              {text}: <bdi>{visible(error)}</bdi> <button type="button" onClick={() => takeBack(key)}>Close</button>
            </>
          )}
        </p>
      ))}
    </div>
  );
}
