declare module "cloudflare:workers" {
  export const DurableObject: import("./shapes.ts").ObjectBaseConstructor;
}
