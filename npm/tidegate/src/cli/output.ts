/** Reports output that cannot be written, once, and sets the exit code 1. The program goes on: it may be a service. */
export function reportUnwritable(program: string): void {
  let reported = false;
  process.stdout.on("error", ({ code, message }: NodeJS.ErrnoException) => {
    // A reader that closes the pipe early (`| head`) is no failure.
    if (code === "EPIPE" || reported) return;
    reported = true;
    process.stderr.write(`${program}: the output cannot be written: ${message}\n`);
    process.exitCode = 1;
  });
}
