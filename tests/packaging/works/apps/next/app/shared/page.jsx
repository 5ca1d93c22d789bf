import { shared } from "../../answers.js";

export const dynamic = "force-dynamic";

/** Spends what the route handler `/api/shared` left. */
export default function Page() {
  return <p>{`remaining ${shared.limit("send").remaining}`}</p>;
}
