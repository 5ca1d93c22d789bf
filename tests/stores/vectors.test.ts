/** That a part of the vectors shows what all of them show. */
import { expect, test } from "vitest";
import type { VectorFile } from "tidegate/testing";
import { few, vectors } from "./vectors.ts";

const operations = ({ vectors: histories }: VectorFile): string[] => {
  const found = histories.flatMap(({ config, steps = [] }) =>
    steps.flatMap(({ op, reserve, requests }) =>
      (requests ?? [{ config, reserve }]).map((request) => `${op} ${request.reserve} ${request.config?.kind}`),
    ),
  );
  return [...new Set(found)].sort();
};

// The histories of a file repeat in a cycle: every fourth of them had no window of odd numbers, and no `give` after a change.
test.each(Object.keys(vectors))("the part of %s has each operation on each kind of limit", (file) => {
  expect(operations(few[file] as VectorFile)).toEqual(operations(vectors[file] as VectorFile));
});
