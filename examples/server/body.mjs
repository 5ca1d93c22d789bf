// Reads the body of a request as JSON, up to the size that the routes need.

const MOST_BYTES = 4096;
const refused = (status, error) => ({ refused: { status, headers: {}, body: { error } } });

/** Resolves with `{ json }` (an empty object if there is no body), or with `{ refused }`, the response with the reason. */
export async function read(request) {
  const chunks = [];
  let bytes = 0;
  // A body that is too long leaves the connection open: the response uses it.
  for await (const chunk of request.iterator({ destroyOnReturn: false })) {
    bytes += chunk.length;
    if (bytes > MOST_BYTES) return refused(413, `a body has at most ${MOST_BYTES} bytes`);
    chunks.push(chunk);
  }
  const text = Buffer.concat(chunks).toString("utf8");
  if (text.trim() === "") return { json: {} };
  try {
    return { json: JSON.parse(text) };
  } catch {
    return refused(400, "the body is not JSON");
  }
}
