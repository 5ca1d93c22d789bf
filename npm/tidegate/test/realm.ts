import { createContext, runInContext } from "node:vm";

const context = createContext({});

/** What a script evaluates to in another realm, as in Jest's sandbox or an iframe: its objects are of other classes. */
export const there = <T>(script: string): T => runInContext(script, context) as T;

const promised = there<(value: unknown) => Promise<unknown>>("(async (value) => value)");

/** The same object, whose methods return promises of another realm where they return promises. */
export const promisingThere = <T extends object>(object: T): T =>
  new Proxy(object, {
    get(target, field) {
      const value: unknown = Reflect.get(target, field);
      if (typeof value !== "function") return value;
      return (...args: unknown[]) => {
        const result: unknown = value.apply(target, args);
        return result instanceof Promise ? promised(result) : result;
      };
    },
  });
