declare module "cloudflare:workers" {
  export const DurableObject: import("./shapes.ts").ObjectBaseConstructor;
  export const waitUntil: ((work: Promise<unknown>) => void) | undefined;
}
