// What page_logic_test.py loads.
import "./table_cases";
import "./curve_cases";
import "./page_cases";
import "./analysis_cases";
import "./lineage_cases";
import "./record_cases";

export {outcomes} from "./cases";
export {displayLists} from "./display_lists";
