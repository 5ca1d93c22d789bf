// NestJS with a limit for all routes and another for one. Compile it as Nest does, with experimentalDecorators.
import "reflect-metadata";
import { Controller, Get, Module } from "@nestjs/common";
import { NestFactory } from "@nestjs/core";
import { defineLimits, SECOND } from "tidegate";
import { RateLimit, RateLimitDecision, RateLimitModule, type RequestDecision, SkipRateLimit } from "tidegate/nest";

const limits = defineLimits({
  // Per client: three at once, one more every ten seconds.
  api: { kind: "token bucket", rate: 1, period: 10 * SECOND, capacity: 3 },
  // For all clients together: what the search engine behind it can take.
  search: { kind: "token bucket", rate: 50, period: SECOND },
});

@Controller()
class AppController {
  @Get()
  index(@RateLimitDecision() decision: RequestDecision) {
    return { message: "hello", remaining: decision.remaining };
  }

  @Get("search")
  @RateLimit({ limits: [{ name: "api" }, { name: "search", key: false, count: 5 }] })
  search() {
    return { found: [] };
  }

  @Get("health")
  @SkipRateLimit()
  health() {
    return "well";
  }
}

@Module({ imports: [RateLimitModule.forRoot({ limiter: limits, name: "api" })], controllers: [AppController] })
class AppModule {}

const app = await NestFactory.create(AppModule, { logger: ["error", "warn"] });
await app.listen(Number(process.env["PORT"] ?? 3000), "127.0.0.1");
console.log(await app.getUrl());
