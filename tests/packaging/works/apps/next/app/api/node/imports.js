import * as fetching from "tidegate/fetch";
import { redis } from "tidegate/redis";
import { shared } from "tidegate/shared";

export const fetchLimit = Object.keys(fetching).length > 0 && redis && shared().name === "memory";
