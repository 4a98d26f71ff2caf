import {createRoot} from "react-dom/client";

import {startKeys} from "./keys";
import {record} from "./record/record";
import {Shell} from "./shell";
import {store} from "./store";
import {startTheme} from "./theme";

startTheme();
startKeys();
if (record === null) store.connection.start();
const place = document.getElementById("page");
if (place) createRoot(place).render(<Shell />);
