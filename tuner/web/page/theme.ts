// Dark or light: as the system has it, unless somebody chose here. Kept on this machine, not in the address.

import {useSyncExternalStore} from "react";

export type Theme = "dark" | "light";
const KEY = "espalier-theme";
const system = window.matchMedia("(prefers-color-scheme: dark)");
const listeners = new Set<() => void>();

function chosen(): Theme | null {
  try {
    const kept = localStorage.getItem(KEY);
    return kept === "dark" || kept === "light" ? kept : null;
  } catch {
    return null; // storage is forbidden here
  }
}

let theme: Theme = chosen() ?? (system.matches ? "dark" : "light");

function apply(): void {
  document.documentElement.dataset["theme"] = theme;
  for (const listener of listeners) listener();
}

export function startTheme(): void {
  apply();
  system.addEventListener("change", () => {
    theme = chosen() ?? (system.matches ? "dark" : "light");
    apply();
  });
}

export function switchTheme(): void {
  theme = theme === "dark" ? "light" : "dark";
  try {
    localStorage.setItem(KEY, theme);
  } catch {
    // It holds for this page alone.
  }
  apply();
}

export function useTheme(): Theme {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => theme,
  );
}
