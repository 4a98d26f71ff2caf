/** Hands a file to the browser. */
export function download(name: string, content: Blob): void {
  const address = URL.createObjectURL(content);
  const link = document.createElement("a");
  link.href = address;
  link.download = name;
  link.click();
  // The browser has to have begun.
  window.setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

/** A name that every file system takes. */
export function fileName(name: string, suffix: string): string {
  const safe = name.replace(/[^\w.-]+/g, "_").replace(/^\.+/, "").slice(0, 80);
  return `${safe === "" ? "study" : safe}${suffix}`;
}
