import { sources } from "../.vitepress/links.mts";

export default { paths: sources };
