import { shared } from "../../../answers.js";

export const dynamic = "force-dynamic";
export const GET = () => Response.json(`remaining ${shared.limit("send").remaining}`);
