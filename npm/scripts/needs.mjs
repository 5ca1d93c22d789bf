// Programs that some tests need: how to find them, and the command that installs them.
import { existsSync, readdirSync } from "node:fs";
import { delimiter, join } from "node:path";
import { SERVERS } from "./stores.mjs";

const INSTALL = {
  nginx: "apt-get install -y nginx   (macOS: brew install nginx)",
  haproxy: "apt-get install -y haproxy   (macOS: brew install haproxy)",
  caddy: "apt-get install -y caddy   (macOS: brew install caddy)",
  "c++": "apt-get install -y g++   (macOS: xcode-select --install)",
  ...Object.fromEntries(
    SERVERS.map(({ program, apt, brew }) => [program, `apt-get install -y ${apt}   (macOS: brew install ${brew})`]),
  ),
};

/** Debian keeps PostgreSQL's server programs off the PATH. */
function debianPostgres() {
  const base = "/usr/lib/postgresql";
  return existsSync(base) ? readdirSync(base).map((version) => join(base, version, "bin")) : [];
}

const isThere = (program) =>
  [...(process.env.PATH ?? "").split(delimiter), ...debianPostgres()].some((folder) =>
    existsSync(join(folder, process.platform === "win32" ? `${program}.exe` : program)),
  );

/** The missing programs, as `[program, how to install it]`. */
export function missing(programs) {
  return programs.filter((program) => !isThere(program)).map((program) => [program, INSTALL[program]]);
}
