import { fetchLimit } from "./imports.js";
import { answers } from "../../../answers.js";

export const dynamic = "force-dynamic";
export const GET = () => {
  if (!fetchLimit) throw new Error("an entry is empty");
  return Response.json(answers());
};
