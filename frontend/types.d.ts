/** Types that every file of the page knows. Those of the server come from its OpenAPI document (`make frontend`). */

import type { components, paths } from "./generated/api";

/** With every default filled in, as the server sends it. */
type Full<T> = T extends object ? { [K in keyof T]-?: Full<T[K]> } : T;
type Values<T> = [T] extends [object] ? { [K in keyof T]?: AddressValue } : object;

declare global {
  /** What the server sends, by the names of schemas.py: Api["State"], Api["Card"]. */
  type Api = Full<components["schemas"]>;
  /** A request body, by its name in schemas.py. */
  type Requests = components["schemas"];

  type Method = "get" | "post" | "delete";
  /** The paths that answer to a method. */
  type PathsOf<M extends Method> = { [P in keyof paths]: paths[P][M] extends object ? P : never }[keyof paths];
  type AnswerTo<M extends Method, P extends keyof paths> = paths[P][M] extends {
    responses: { 200: { content: { "application/json": infer A } } };
  } ? Full<A> : never;
  type BodyOf<P extends keyof paths> = paths[P]["post"] extends {
    requestBody: { content: { "application/json": infer B } };
  } ? B : never;
  /** A body with no field that the server does not know: it refuses those. */
  type Exactly<B, Known> = B & { [K in Exclude<keyof B, keyof Known>]: never };
  /** The parameters of a GET, in its path and in its query. */
  type ValuesOf<P extends keyof paths> = paths[P]["get"] extends { parameters: { query?: infer Q; path?: infer W } }
    ? Values<Q> & Values<W> : never;
  type AddressValue = string | number | boolean | null | undefined | readonly (string | number)[];

  /** What can stand inside an element. */
  type Child = Node | string | number | null | undefined | false | readonly Child[];
  interface Properties {
    class?: string | null;
    dataset?: Record<string, string | number>;
    style?: Record<string, string>;
    onclick?: ((event: MouseEvent) => unknown) | null;
    ondblclick?: (event: MouseEvent) => unknown;
    oninput?: (event: Event) => unknown;
    onchange?: (event: Event) => unknown;
    onkeydown?: (event: KeyboardEvent) => unknown;
    onsubmit?: (event: SubmitEvent) => unknown;
    [attribute: string]: unknown;
  }

  interface Point { x: number; y: number }
  /** Points as two lists. */
  interface Places { x: ArrayLike<number>; y: ArrayLike<number> }
  /** A picture: enough to show it. */
  interface Picture { row: number; v: string }
  /** A class that was chosen or typed; `class_id` is null for a new one. */
  interface PickedClass { class_id: string | null; name: string }
}
