// The state of a study or trial: a shape and its word, never a colour alone.

const SHAPES: Record<string, {sign: string; kind: string}> = {
  running: {sign: "▶", kind: "good"},
  waiting: {sign: "○", kind: "muted"},
  paused: {sign: "❚❚", kind: "muted"},
  complete: {sign: "✔", kind: "good"},
  pruned: {sign: "✂", kind: "muted"},
  failed: {sign: "✖", kind: "bad"},
  stopped: {sign: "■", kind: "muted"},
};

export function State({of}: {of: string}) {
  const shape = SHAPES[of] ?? {sign: "●", kind: "muted"};
  return (
    <span className={`state ${shape.kind}`}>
      <span aria-hidden="true">{shape.sign}</span> {of}
    </span>
  );
}
