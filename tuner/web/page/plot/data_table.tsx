// The same data as a picture's, as a table.

import {count} from "../format";

export interface TableOf {
  columns: readonly string[];
  rows: readonly (readonly (string | number)[])[];
}

const MOST_ROWS = 1000;

export function DataTable({label, table}: {label: string; table: TableOf}) {
  const rows = table.rows.slice(0, MOST_ROWS);
  return (
    <div className="table-frame" tabIndex={0} role="region" aria-label={`${label}, as a table`}>
      <table>
        <caption className="unseen">{label}</caption>
        <thead>
          <tr>
            {table.columns.map((column, at) => (
              <th key={column} scope="col" className={at > 0 && typeof rows[0]?.[at] === "number" ? "number" : undefined}>{column}</th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row, at) => (
            <tr key={at}>
              {row.map((cell, column) =>
                column === 0
                  ? <th key={column} scope="row">{cell}</th>
                  : <td key={column} className={typeof cell === "number" ? "number" : undefined}>{cell}</td>)}
            </tr>
          ))}
        </tbody>
      </table>
      {table.rows.length === 0 && <p className="empty">Nothing yet.</p>}
      {table.rows.length > rows.length && (
        <p className="empty">The first {count(rows.length)} of {count(table.rows.length)} rows.</p>
      )}
    </div>
  );
}
