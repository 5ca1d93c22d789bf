/**
 * State in a DynamoDB table: exact among all processes, by each process's clock.
 *
 * @module
 */
import { during } from "#workers";
import type {
  AttributeValue,
  DynamoDB,
  TransactionCanceledException,
  TransactWriteItem,
} from "@aws-sdk/client-dynamodb";
import { decode, encode, NotAState } from "../limit/codec.ts";
import { checkMethods, checkTable, textThat } from "../limit/checks.ts";
import { isBytes } from "../limit/realms.ts";
import { InputError, messageOf, showClient } from "../limit/errors.ts";
import { afterWaiting } from "../limit/monotonic.ts";
import type { AsyncStore } from "./contract.ts";
import { wellFormed } from "./record.ts";
import { connectedBy } from "./connecting.ts";
import type { Change, Entry } from "./swap/database.ts";
import { swapStore } from "./swap.ts";

/** What the store uses of a `DynamoDB` of `@aws-sdk/client-dynamodb`, by shape. */
export interface DynamoDbLike {
  getItem(input: never, options: never): Promise<unknown>;
  putItem(input: never, options: never): Promise<unknown>;
  deleteItem(input: never, options: never): Promise<unknown>;
  transactGetItems(input: never, options: never): Promise<unknown>;
  transactWriteItems(input: never, options: never): Promise<unknown>;
}

/** Settings of {@link dynamodb}. */
export interface DynamoDbOptions {
  /** The table's name or ARN; default `"tidegate"`. Stores with the same one share their states. */
  table?: string | undefined;
}

/** The error of a transaction; other errors have `name` alone. */
type Canceled = Pick<TransactionCanceledException, "CancellationReasons"> & { readonly name: string };
type Client = Pick<DynamoDB, keyof DynamoDbLike>;
/** The attribute `state` as it was read: `undefined` if there is none. */
type Version = AttributeValue | undefined;

const OPTIONS = { table: textThat("the name or the ARN of a table") };
const METHODS = ["getItem", "putItem", "deleteItem", "transactGetItems", "transactWriteItems"] as const;
/** The key of the first request, which resolves credentials and opens a connection: no limit has it. */
const NO_IDENTITY = "/";
/** Ms. */
const CONNECT_TIMEOUT = 10_000;
/** Nothing was written, and another attempt may succeed. */
const BUSY =
  /^(None|ConditionalCheckFailed|ReplicatedWriteConflict|TransactionConflict|ProvisionedThroughputExceeded|Throttling|RequestLimitExceeded)/;

/**
 * A store in a DynamoDB table: a consistent `GetItem` and, if something is taken, a conditional `PutItem` for a batch
 * of calls on a key. With `limitAll` it is one `TransactGetItems` and one `TransactWriteItems`.
 *
 * ```ts
 * import { DynamoDB } from "@aws-sdk/client-dynamodb";
 *
 * const store = dynamodb(new DynamoDB({ region: "eu-central-1" }));
 * const limits = defineLimits({ login: { kind: "token bucket", rate: 5, period: MINUTE } }, { store });
 * const { ok } = await limits.limit("login", { key: userId });
 * ```
 *
 * The table must exist, with the partition key `id`, a string. Each item is `id`, `state` (16 bytes) and `dropAt`, the
 * Unix time in seconds from which it may be deleted. Make `dropAt` the table's TTL attribute. A limit with `shards` is one
 * item. A step that lost against another process, or was throttled, is repeated until the call's deadline; a request
 * that is out by then is aborted. The store does not use the client's own attempts: they pause for longer than the deadline,
 * and send a write again whose answer was lost. Calls reject with a `StoreError` if DynamoDB fails. Throws an `InputError`
 * if an argument is wrong.
 */
export function dynamodb(client: DynamoDbLike, options: DynamoDbOptions = {}): AsyncStore {
  checkMethods("client", client, METHODS, "a client with a method for each operation: new DynamoDB(…)", (value) =>
    typeof Object(value).send === "function" ? "a client that has only `send`" : showClient(value),
  );
  // Its methods have these names too, and call back: a reply would look like an absent item.
  if ("makeRequest" in client) {
    const rule = "of AWS SDK 3: new DynamoDB(…) of @aws-sdk/client-dynamodb";
    throw new InputError("client", rule, client, "one of AWS SDK 2");
  }
  checkTable("dynamodb", options, OPTIONS);
  const { table: TableName = "tidegate" } = options;
  const database = withoutAttempts(client as Client);

  const keyOf = (id: string) => ({ id: { S: wellFormed(id) } });
  /** Sends a request, and aborts it at `until`. */
  const send = async <T>(until: number, request: (at: { abortSignal: AbortSignal }) => Promise<T>): Promise<T> => {
    const aborter = new AbortController();
    const cancel = afterWaiting(Math.max(until - performance.now(), 0), () => aborter.abort(), true);
    try {
      return await request({ abortSignal: aborter.signal });
    } catch (error) {
      const { name, CancellationReasons: reasons } = Object(error) as Canceled;
      // The message of a transaction may be the codes alone.
      const message = reasons?.find(({ Code }) => Code === "ValidationError")?.Message ?? messageOf(error);
      const isAbsent = name === "ResourceNotFoundException";
      const isInvalid = name === "ValidationException" || name === "TransactionCanceledException";
      if (!isAbsent && !(isInvalid && /\bkeys?\b/.test(message))) throw error;
      const what = isAbsent
        ? `there is no table "${TableName}", or it is not active`
        : `the table "${TableName}" has another key`;
      const remedy = "create it with the partition key `id`, a string, and no sort key";
      throw new Error(`${what} (${message}); ${remedy}`, { cause: error });
    } finally {
      cancel();
    }
  };
  /** What is written to one item, or only compared. */
  function itemOf({ id, seen, write }: Change<Version>): TransactWriteItem {
    const where = { TableName, ...(seen && unchanged(seen.version)) };
    // Only read: the transaction fails if it has changed.
    if (write === undefined) return { ConditionCheck: { ...where, Key: keyOf(id) } as never };
    if (write.state === null) return { Delete: { ...where, Key: keyOf(id) } };
    const dropAt = Math.min(Math.ceil((Date.now() + write.dropIn) / 1000), Number.MAX_SAFE_INTEGER);
    return { Put: { ...where, Item: { ...keyOf(id), state: { B: encode(write.state) }, dropAt: { N: `${dropAt}` } } } };
  }

  const store = swapStore<Version>({
    name: "dynamodb",
    async read(ids, until) {
      const [id] = ids;
      if (ids.length === 1) {
        const input = { TableName, Key: keyOf(id as string), ConsistentRead: true };
        return [entryOf((await send(until, (at) => database.getItem(input, at))).Item)];
      }
      const TransactItems = ids.map((id) => ({ Get: { TableName, Key: keyOf(id) } }));
      const { Responses } = await send(until, (at) => database.transactGetItems({ TransactItems }, at));
      return ids.map((_, i) => entryOf(Responses?.[i]?.Item));
    },
    decode(value) {
      if (isBytes(value)) return decode(value);
      throw new NotAState("the attribute `state` is not binary");
    },
    async swap(changes, { until }) {
      const TransactItems = changes.map(itemOf);
      const [{ Put, Delete } = {}] = TransactItems;
      await send<unknown>(until, (at) => {
        if (changes.length === 1 && Put !== undefined) return database.putItem(Put, at);
        if (changes.length === 1 && Delete !== undefined) return database.deleteItem(Delete, at);
        return database.transactWriteItems({ TransactItems }, at);
      });
      return true;
    },
    readsAgain: (error) => Object(error).$metadata?.httpStatusCode >= 500,
    busy(error) {
      const { name, CancellationReasons } = Object(error) as Canceled;
      const causes =
        name === "TransactionCanceledException" ? CancellationReasons?.map(({ Code = "" }) => Code) : [name];
      // Mostly one partition is throttled, and never all calls: a table grants up to its throughput.
      return causes?.every((cause) => BUSY.test(cause)) === true ? "entries" : undefined;
    },
  });
  const hello = { TableName, Key: keyOf(NO_IDENTITY) };
  const connect = () => send(performance.now() + CONNECT_TIMEOUT, (at) => database.getItem(hello, at));
  // In a Worker, calls of several requests share steps.
  return connectedBy(connect, { ...store, during });
}

/** The client, but each request is sent once. Middleware that is added to the client later applies, too. */
function withoutAttempts(client: Client): Client {
  const { middlewareStack } = client as Partial<DynamoDB>;
  // A stand-in of the application's may have none.
  if (middlewareStack === undefined) return client;
  // Others are placed relative to it, so it is replaced instead of removed.
  const retrying = { name: "retryMiddleware", step: "finalizeRequest", priority: "high", override: true } as const;
  const once = (): DynamoDB["middlewareStack"] => {
    const stack = middlewareStack.clone();
    stack.add((next) => next, retrying);
    return stack;
  };
  return Object.create(client, { middlewareStack: { get: once } });
}

/** An item without a state is corrupt, and not absent. */
const entryOf = (item: Record<string, AttributeValue> | undefined): Entry<Version> => ({
  value: item === undefined ? undefined : (item["state"]?.B ?? item["state"] ?? null),
  version: item?.["state"],
});

/** The condition that the attribute `state`, a reserved word, is what was read. */
const unchanged = (version: Version) => ({
  ConditionExpression: version === undefined ? "attribute_not_exists(#state)" : "#state = :state",
  ExpressionAttributeNames: { "#state": "state" },
  ...(version && { ExpressionAttributeValues: { ":state": version } }),
});
