// The record that this file holds, if it is one: then nothing is asked of a service, and nothing changes any more.

import type {StudyRecord} from "./contract";

const element = document.getElementById("record");

export const record: StudyRecord | null = element === null ? null : (JSON.parse(element.textContent ?? "") as StudyRecord);
