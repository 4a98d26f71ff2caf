// A picture as a PNG file: its canvas with the axes' text around it.

import {type RefObject, useRef} from "react";

import {download, fileName} from "./download";

const PAD = 8;

/** Where the picture is, and a button that saves it. */
export function usePictureButton(name: string): [RefObject<HTMLElement>, JSX.Element] {
  const place = useRef<HTMLElement>(null);
  const save = () => {
    const plot = place.current?.querySelector<HTMLElement>(".plot-area");
    if (plot) drawn(plot).toBlob((blob) => blob !== null && download(fileName(name, ".png"), blob), "image/png");
  };
  return [place, <button type="button" key="png" onClick={save}>PNG</button>];
}

/** What is seen of a plot, on one canvas. */
export function drawn(plot: HTMLElement): HTMLCanvasElement {
  const box = plot.getBoundingClientRect();
  const ratio = window.devicePixelRatio || 1;
  const canvas = document.createElement("canvas");
  canvas.width = Math.round((box.width + 2 * PAD) * ratio);
  canvas.height = Math.round((box.height + 2 * PAD) * ratio);
  const context = canvas.getContext("2d");
  if (context === null) return canvas;
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.fillStyle = getComputedStyle(document.documentElement).getPropertyValue("--panel").trim();
  context.fillRect(0, 0, box.width + 2 * PAD, box.height + 2 * PAD);
  context.translate(PAD - box.left, PAD - box.top);
  for (const part of plot.querySelectorAll("canvas")) {
    const at = part.getBoundingClientRect();
    if (part.width > 0) context.drawImage(part, at.left, at.top, at.width, at.height);
  }
  for (const text of plot.querySelectorAll<SVGTextElement>("svg text")) {
    const at = text.getBoundingClientRect();
    const style = getComputedStyle(text);
    context.font = `${style.fontSize} ${style.fontFamily}`;
    context.fillStyle = style.fill;
    context.textBaseline = "middle";
    context.fillText(text.textContent ?? "", at.left, at.top + at.height / 2);
  }
  return canvas;
}
