/** Upstash's client and Vercel's, over HTTP: one request for the commands of a turn, without the client's own retries. */

interface Reply {
  readonly result?: unknown;
  readonly error?: string | undefined;
}

/** What sends a client's commands. */
interface Requester {
  readonly retry: { readonly attempts: number };
  request(request: { path: string[]; body: string[][] }): Promise<readonly Reply[]>;
}

/** What sends this client's commands, if it is one of these two. */
export function requesterOf(client: { readonly [name: string]: unknown }): Requester | undefined {
  if (typeof client["evalsha"] !== "function") return undefined;
  const requester = Object(client["client"]) as Partial<Requester>;
  const found = typeof requester.request === "function" && typeof requester.retry?.attempts === "number";
  return found ? (requester as Requester) : undefined;
}

/** Most commands of a request: with the script in each of them it is still below 1 MB, Upstash's smallest limit. */
const MOST_COMMANDS = 32;

/** One request, while its commands are collected. */
interface Batch {
  readonly commands: string[][];
  readonly replies: Promise<readonly Reply[]>;
}

/** Sends a command, and returns its result. */
export function commandSender(requester: Requester): (command: string[]) => Promise<unknown> {
  // A request whose reply was lost may have been carried out. The client's `retry: false` means one retry.
  const once = Object.create(requester, { retry: { value: { attempts: 0 } } }) as Requester;
  let open: Batch | undefined;
  const start = (): Batch => {
    const commands: string[][] = [];
    const request = () => {
      open = undefined;
      return once.request({ path: ["pipeline"], body: commands });
    };
    return { commands, replies: Promise.resolve().then(request) };
  };
  return async (command) => {
    open ??= start();
    const { commands, replies } = open;
    const at = commands.push(command) - 1;
    if (commands.length === MOST_COMMANDS) open = undefined;
    const all = Object(await replies) as readonly Reply[] & Reply;
    // A proxy may reply to all of them with one error.
    const { result, error } = all[at] ?? all;
    if (error !== undefined) throw new Error(error);
    return result;
  };
}
