// Opens a first folder, gives up root where it has it, and says what comes of a second: node stranger.mjs <own> <other>
import { file } from "tidegate/file";

const [own, other] = process.argv.slice(2);
file(own);
if (process.getuid() === 0) {
  process.setgid(65_534);
  process.setuid(65_534);
}
try {
  file(other);
  console.log("opened");
} catch (error) {
  console.log(error.code, error.message);
}
