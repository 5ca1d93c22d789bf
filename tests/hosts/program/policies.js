// Every policy document of the shared fixtures, checked in the current runtime.
import { checkPolicies, definePolicies } from "tidegate/policies";
import { invalid, valid } from "./documents.js";

function differs(expected, got) {
  const [is, was] = [JSON.stringify(expected), JSON.stringify(got)];
  return is === was ? {} : { error: `expected ${is}; got ${was}` };
}

/** @returns {{ name: string, error?: string }[]} */
export function policies() {
  const results = [];
  for (const { about, document, limits } of valid) {
    const { names } = definePolicies(document, { claims: () => undefined });
    results.push({ name: `policies > ${about}`, ...differs(limits, names) });
  }
  for (const { about, document, text, sentences } of invalid) {
    const problems = checkPolicies(text ?? JSON.stringify(document));
    const messages = problems.map(({ message }) => message);
    results.push({ name: `policies > mistakes: ${about}`, ...differs(sentences, messages) });
  }
  return results;
}
