// What React's types are written with and Debian has no package of.
declare module "csstype" {
  export interface Properties<Length = 0, Time = 0> {
    [property: string]: string | number | Length | Time | undefined;
  }
}
declare module "prop-types" {
  export interface Validator<T> {
    readonly type?: T;
  }
  export type Requireable<T> = Validator<T>;
  export type ValidationMap<T> = {[K in keyof T]?: Validator<T[K]>};
  export type ReactComponentLike = unknown;
  export type ReactElementLike = unknown;
  export type ReactNodeLike = unknown;
  export type InferType<P> = P;
  export type InferProps<V> = V;
}
