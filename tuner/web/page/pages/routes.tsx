// Which page an address shows. A new page is a row here.

import type {ReactNode} from "react";

import {record} from "../record/record";
import {ClusterPage} from "./cluster/cluster_page";
import {ComparePage} from "./compare/compare_page";
import {PoolPage} from "./pool/pool_page";
import {StudyPage} from "./study/study_page";
import {TrialPage} from "./trial/trial_page";

export interface Route {
  /** Of the path without its trailing slash. */
  pattern: RegExp;
  title: string;
  /** Called with the pattern's groups. */
  page: (groups: readonly string[]) => ReactNode;
}

export const ROUTES: readonly Route[] = [
  // A record is of one study.
  ...(record !== null ? [] : [
    {pattern: /^$/, title: "Pool", page: () => <PoolPage />},
    {pattern: /^\/ui\/cluster$/, title: "Cluster", page: () => <ClusterPage />},
  ]),
  {pattern: /^\/ui\/studies\/(\d+)$/, title: "Study", page: ([id]) => <StudyPage id={Number(id)} />},
  {pattern: /^\/ui\/studies\/(\d+)\/trials\/(\d+)$/, title: "Trial",
   page: ([study, number]) => <TrialPage key={`${study}/${number}`} study={Number(study)} number={Number(number)} />},
  {pattern: /^\/ui\/compare$/, title: "Compare", page: () => <ComparePage />},
];
