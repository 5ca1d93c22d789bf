const { defineLimits, MINUTE } = require("tidegate");
const { shared } = require("tidegate/shared");

const limits = defineLimits({ send: { kind: "token bucket", rate: 2, period: MINUTE } }, { store: shared() });
console.log(JSON.stringify(["a", "a", "a", "b"].map((key) => limits.limit("send", { key }).ok)));
