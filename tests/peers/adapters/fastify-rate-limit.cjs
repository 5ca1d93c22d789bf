// In place of store/LocalStore.js: the plugin calls it with settings of its own instead of a store's.
const { fastifyRateLimitStore } = require("tidegate/fastify");

module.exports = class LocalStore {
  constructor(continueExceeding, exponentialBackoff) {
    const Store = fastifyRateLimitStore();
    this.store = new Store({ continueExceeding, exponentialBackoff });
  }

  incr(...given) {
    this.store.incr(...given);
  }

  read(...given) {
    this.store.read(...given);
  }

  child({ continueExceeding, exponentialBackoff }) {
    return new LocalStore(continueExceeding, exponentialBackoff);
  }
};
