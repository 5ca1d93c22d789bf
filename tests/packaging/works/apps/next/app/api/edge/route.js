import { answers } from "../../../answers.js";

export const runtime = "edge";
export const GET = () => Response.json(answers());
