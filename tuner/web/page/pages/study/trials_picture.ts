// What a picture of a study's trials is given. What is pointed at in one is marked in the others.

import type {Study, StudyRow} from "../../contract";
import type {Trials} from "../../table/use_trials";

export interface TrialsPicture {
  study: Study;
  row: StudyRow;
  trials: Trials;
  /** The id of the trial that is pointed at. */
  hovered: number | null;
  onHover: (id: number | null) => void;
  /** With the trial's number. */
  onOpen: (trial: number) => void;
}
