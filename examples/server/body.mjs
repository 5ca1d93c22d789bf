// The body of a request, as JSON, and no more of it than any route needs.

const MOST_BYTES = 4096;
const refused = (status, error) => ({ refused: { status, headers: {}, body: { error } } });

/** Reads it: `{ json }`, which is an empty object where there is no body, or `{ refused }`, the answer that says why. */
export async function read(request) {
  const chunks = [];
  let bytes = 0;
  // Left open where it is too long: the answer goes over the same connection.
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
