// Rendered at build time, when there is no client.
export const prerender = true;
export const GET = () => new Response("built");
