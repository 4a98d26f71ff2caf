// What a record tells of the study as a whole, beside the tiles: how its slots were used, and what they cost.

import {count, number, visible} from "../../format";
import {Tile} from "../../parts/tile";
import {DataTable} from "../../plot/data_table";
import {record} from "../../record/record";

export function RecordFacts() {
  if (record === null) return null;
  const {use, checkpoint, payments} = record.report;
  const part = (of: number) => `${number(100 * of, 3)} %`;
  return (
    <>
      {use.slots > 0 && (
        <div className="tiles">
          <Tile value={part(use.overall)}
                name={`of the time of ${count(use.slots)} ${use.slots === 1 ? "slot" : "slots"} held`} />
          {use.until_last_start > 0 && <Tile value={part(use.until_last_start)} name="until the last trial started" />}
          <Tile value={`${count(use.grown)} / ${count(use.shrunk)}`} name="grown / shrunk in place" />
        </div>
      )}
      {checkpoint !== null && <p className="muted">Checkpoint of the best trial: <code>{visible(checkpoint)}</code></p>}
      {payments.length > 0 && (
        <section className="panel" aria-label="Payments">
          <h2>What was paid</h2>
          <DataTable label="Payments" table={{columns: payments[0]!, rows: payments.slice(1)}} />
        </section>
      )}
    </>
  );
}
