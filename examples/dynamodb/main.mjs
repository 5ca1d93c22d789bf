// Logins in DynamoDB, for all processes that use one table:
//   npm install tidegate @aws-sdk/client-dynamodb
//   node examples/dynamodb/main.mjs
import { DynamoDB } from "@aws-sdk/client-dynamodb";
import { defineLimits, MINUTE, SECOND } from "tidegate";
import { dynamodb } from "tidegate/dynamodb";

const client = new DynamoDB();
// Once, in your set-up. Deployed tables usually come from CloudFormation, the CDK or Terraform.
const TableName = "tidegate";
await client.createTable({
  TableName,
  BillingMode: "PAY_PER_REQUEST",
  AttributeDefinitions: [{ AttributeName: "id", AttributeType: "S" }],
  KeySchema: [{ AttributeName: "id", KeyType: "HASH" }],
});
while ((await client.describeTable({ TableName })).Table.TableStatus !== "ACTIVE");
await client.updateTimeToLive({ TableName, TimeToLiveSpecification: { AttributeName: "dropAt", Enabled: true } });

const limits = defineLimits(
  { login: { kind: "token bucket", rate: 2, period: MINUTE } },
  { store: dynamodb(client, { table: TableName }), timeout: 2 * SECOND },
);

for (const attempt of ["first", "second", "third"]) {
  const { ok, remaining } = await limits.limit("login", { key: "user 7" });
  console.log(attempt, ok ? `allowed, ${remaining} left` : "try again later");
}
client.destroy();
