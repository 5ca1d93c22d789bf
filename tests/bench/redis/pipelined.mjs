// The server's own limit: GETs over a plain socket, 512 at a time, replies only counted.
import { connect } from "node:net";

const AT_ONCE = 512;

export function pipelined(port) {
  return new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1", () => {
      socket.setNoDelay(true);
      const run = async () => {};
      run.all = (ms) => all(socket, ms);
      resolve({ run, close: () => socket.destroy() });
    });
  });
}

/** GETs of absent keys: each reply has five bytes. */
function all(socket, ms) {
  const batch = Buffer.from(
    Array.from({ length: AT_ONCE }, (_, i) => `*2\r\n$3\r\nGET\r\n$9\r\nnone:${String(i).padStart(4, "0")}\r\n`).join(
      "",
    ),
  );
  return new Promise((resolve) => {
    let bytes = 0;
    let sent = 2;
    const began = performance.now();
    const onData = (data) => {
      bytes += data.length;
      const ended = performance.now() - began >= ms;
      while (!ended && bytes >= (sent - 1) * AT_ONCE * 5) {
        socket.write(batch);
        sent++;
      }
      if (ended && bytes === sent * AT_ONCE * 5) {
        socket.off("data", onData);
        resolve((sent * AT_ONCE * 1000) / (performance.now() - began));
      }
    };
    socket.on("data", onData);
    socket.write(batch);
    socket.write(batch);
  });
}
