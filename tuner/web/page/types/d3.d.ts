// The parts of D3's modules that the page uses, in the versions that Debian has (those of D3 5): no types are packaged.
declare module "d3-scale" {
  export interface ContinuousScale {
    (value: number): number;
    invert(pixel: number): number;
    domain(): number[];
    domain(domain: readonly number[]): this;
    range(): number[];
    range(range: readonly number[]): this;
    clamp(clamp: boolean): this;
    nice(count?: number): this;
    ticks(count?: number): number[];
    tickFormat(count?: number, format?: string): (value: number) => string;
    copy(): this;
  }
  export interface TimeScale {
    (value: Date | number): number;
    invert(pixel: number): Date;
    domain(domain: readonly (Date | number)[]): this;
    range(range: readonly number[]): this;
    ticks(count?: number): Date[];
    tickFormat(count?: number): (value: Date) => string;
  }
  export function scaleLinear(): ContinuousScale;
  export function scaleLog(): ContinuousScale;
  export function scaleTime(): TimeScale;
}

declare module "d3-selection" {
  export interface Selection {
    call(what: (selection: Selection, ...rest: never[]) => void): this;
    on(type: string, listener: null | ((this: Element) => void)): this;
    property(name: string, value: unknown): this;
    node(): Element | null;
  }
  export function select(element: Element): Selection;
  export let event: {transform: import("d3-zoom").ZoomTransform; sourceEvent: Event | null};
}

declare module "d3-axis" {
  import type {Selection} from "d3-selection";
  export interface Axis {
    (selection: Selection): void;
    tickSizeOuter(size: number): this;
    tickSizeInner(size: number): this;
    tickPadding(pixels: number): this;
    tickValues(values: readonly (number | Date)[]): this;
    tickFormat(format: (value: never) => string): this;
  }
  export function axisBottom(scale: unknown): Axis;
  export function axisLeft(scale: unknown): Axis;
}

declare module "d3-zoom" {
  import type {Selection} from "d3-selection";
  export interface ZoomTransform {
    readonly k: number;
    readonly x: number;
    readonly y: number;
    translate(x: number, y: number): ZoomTransform;
    scale(k: number): ZoomTransform;
    invertX(x: number): number;
  }
  export interface Zoom {
    (selection: Selection): void;
    on(type: "start" | "zoom" | "end", listener: null | (() => void)): this;
    extent(extent: [[number, number], [number, number]]): this;
    translateExtent(extent: [[number, number], [number, number]]): this;
    scaleExtent(extent: [number, number]): this;
    filter(filter: () => boolean): this;
    transform(selection: Selection, transform: ZoomTransform): void;
  }
  export function zoom(): Zoom;
  export const zoomIdentity: ZoomTransform;
}

declare module "d3-array" {
  export function bisector<T>(accessor: (value: T) => number): {
    left(values: readonly T[], x: number): number;
    right(values: readonly T[], x: number): number;
  };
  export function bisectLeft(values: ArrayLike<number>, x: number): number;
  export function bisectRight(values: ArrayLike<number>, x: number): number;
}

declare module "d3-shape" {
  export interface Line<T> {
    (values: readonly T[]): string | null;
    x(accessor: (value: T) => number): this;
    y(accessor: (value: T) => number): this;
  }
  export function line<T>(): Line<T>;
}
