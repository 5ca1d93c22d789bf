declare module "cloudflare:workers" {
  export const DurableObject: import("./shapes.ts").ObjectBaseConstructor;
  export function waitUntil(work: Promise<unknown>): void;
}
