/** Looks at the servers themselves, past the store. */
import type { Redis } from "ioredis";
import type { State } from "tidegate/store";
import { redisKeyOf, slotOf } from "../../../npm/tidegate/src/stores/redis/key.ts";
import type { Stored } from "tidegate/testing";

/** Where an identity (`name`, `/shard`, `:key`) stands. */
function placeOf(identity: string, tag: string | undefined): string {
  const [, name = "", shard, rest] = /^([^/:]+)(?:\/(\d+))?(:.*)?$/s.exec(identity) ?? [];
  return redisKeyOf("tidegate:", name, shard === undefined ? undefined : Number(shard), rest?.slice(1), tag);
}

function stateOf(bytes: Buffer | null): State | null {
  return bytes === null ? null : { value: bytes.readDoubleLE(0), ts: bytes.readDoubleLE(8) };
}

/** What one server holds. */
export function storedOn(probe: Redis, before = ""): Stored {
  return async (identity) => stateOf(await probe.getBuffer(before + placeOf(identity, undefined)));
}

/** The node of a cluster that owns this place; `probes` are clients of each. */
async function ownerOf(probes: readonly Redis[], place: string): Promise<Redis | undefined> {
  const slots = (await probes[0]?.cluster("SLOTS")) as unknown as [number, number, [string, number]][];
  const port = slots.find(([from, to]) => slotOf(place) >= from && slotOf(place) <= to)?.[2][1];
  return probes.find((probe) => probe.options.port === port);
}

/** What the nodes of a cluster hold. */
export function storedIn(probes: readonly Redis[], tag: string | undefined): Stored {
  return async (identity) => {
    const place = placeOf(identity, tag);
    const owner = await ownerOf(probes, place);
    return stateOf((await owner?.getBuffer(place)) ?? null);
  };
}

/** Overwrites what a cluster holds under an identity with what is no state. */
export function corruptIn(probes: readonly Redis[], tag: string | undefined) {
  return async (identity: string): Promise<void> => {
    const place = placeOf(identity, tag);
    await (await ownerOf(probes, place))?.set(place, "garbage");
  };
}
