/** A row of buttons of which one is chosen. */
export function Choices<T extends string>({label, of, chosen, onChoose}: {
  label: string;
  of: readonly (readonly [T, string])[];
  chosen: T;
  onChoose: (one: T) => void;
}) {
  return (
    <span className="choices" role="group" aria-label={label}>
      <span aria-hidden="true">{label}</span>
      {of.map(([value, text]) => (
        <button key={value} type="button" aria-pressed={value === chosen} onClick={() => onChoose(value)}>{text}</button>
      ))}
    </span>
  );
}
