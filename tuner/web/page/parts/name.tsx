import {shortened, visible} from "../format";

/** A name that others gave: no direction of writing leaks out of it, and nothing in it hides. */
export function Name({of, most = 60}: {of: string; most?: number}) {
  const shown = visible(of);
  const short = shortened(shown, most);
  return <bdi className="name" title={short === shown ? undefined : shown}>{short}</bdi>;
}
