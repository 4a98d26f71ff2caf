export function PoolPage() {
  return <h1>Pool</h1>;
}
