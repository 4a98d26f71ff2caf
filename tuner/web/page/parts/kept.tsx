/** Whether a trial breaks a constraint: a sign and a word, never a colour alone. */
export function Infeasible({of}: {of: boolean}) {
  return (
    <span className={`state ${of ? "bad" : "muted"}`}>
      <span aria-hidden="true">{of ? "⊘" : "✔"}</span> {of ? "yes" : "no"}
    </span>
  );
}
