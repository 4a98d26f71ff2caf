// Output of programs as text that a page can show. Pure.
import {visible} from "../../format";

/** Escape sequences of terminals: colours, cursor moves, titles. */
const ESCAPES = /\u001b(?:\[[0-?]*[ -/]*[@-~]|\][^\u0007\u001b]*(?:\u0007|\u001b\\)?|[PX^_][^\u001b]*(?:\u001b\\)?|[ -/]*[0-~])/g;

/**
 * What a terminal would show at the end: a line that was written over by carriage returns (progress bars) stands as it was last, colours
 * are gone, and what cannot be seen is spelt.
 */
export function logText(output: string): string {
  const plain = output.replace(ESCAPES, "").replace(/\r+\n/g, "\n");
  const lines = plain.split("\n").map((line) => {
    const last = line.replace(/\r+$/, "");
    return last.slice(last.lastIndexOf("\r") + 1);
  });
  return visible(lines.join("\n"), true);
}
