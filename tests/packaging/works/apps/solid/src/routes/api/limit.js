import { answers } from "../../answers.js";

export const GET = () => Response.json(answers());
