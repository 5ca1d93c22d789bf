// `npm run lint`: what a reviewer should not have to say.
import { run } from "./run.mjs";
import { setup } from "./setup.mjs";

setup();
run("biome", ["check", "--error-on-warnings"]);
run("cargo", ["fmt", "--all", "--check"]);
run("cargo", ["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]);
