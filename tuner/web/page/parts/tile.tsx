export function Tile({value, name, kind}: {value: string; name: string; kind?: "bad" | "warn"}) {
  return <div className="tile"><b className={kind}>{value}</b><span>{name}</span></div>;
}
