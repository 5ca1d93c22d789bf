/** The policy as code, for each store and framework. */
import { useState } from "react";
import { FRAMEWORK_NAMES, type FrameworkName, frameworkOf } from "../model/frameworks.ts";
import type { Draft } from "../model/policy.ts";
import { noteOf, snippet, STORE_NAMES, type StoreName, titleOf } from "../model/snippets.ts";
import { Choice, Panel, Scroll } from "./parts.tsx";

export function Code({ draft, reserve, say }: { draft: Draft; reserve: boolean; say: (text: string) => void }) {
  const [store, setStore] = useState<StoreName>("memory");
  const [framework, setFramework] = useState<FrameworkName>("call");
  const [copied, setCopied] = useState("");
  const text = snippet(draft, store, reserve, framework);
  const copy = async (): Promise<void> => {
    try {
      await navigator.clipboard.writeText(text);
      setCopied(text);
      say("Copied.");
    } catch {
      say("The browser does not let this page copy: select the code by hand.");
    }
  };
  return (
    <Panel title="The same policy, as code" hint={noteOf(store)}>
      <Choice label="store" options={STORE_NAMES} titles={titleOf} value={store} onChange={setStore} />
      <Choice
        label="used by"
        options={FRAMEWORK_NAMES}
        titles={frameworkOf}
        value={framework}
        onChange={setFramework}
      />
      <div className="code">
        <Scroll className="text" label={`Code for ${titleOf(store)}, used by ${frameworkOf(framework)}`}>
          <pre>
            <code>{text}</code>
          </pre>
        </Scroll>
        <button type="button" className="primary copy" onClick={() => void copy()}>
          {copied === text ? "Copied" : "Copy"}
        </button>
      </div>
    </Panel>
  );
}
