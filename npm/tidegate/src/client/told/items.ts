/** An item of RFC 9651. Bytes are a string of characters up to 255; a date is its seconds. */
export interface Item {
  readonly kind: "number" | "string" | "token" | "bytes" | "boolean" | "date" | "display";
  readonly value: number | string | boolean;
  readonly parameters: ReadonlyMap<string, Item["value"]>;
}

type Bare = Omit<Item, "parameters">;

const KEY = /[a-z*][a-z0-9_.*-]*/y;
const NUMBER = /-?(?:\d{1,12}\.\d{1,3}|\d{1,15})(?![\d.])/y;
const STRING = /"((?:[\x20\x21\x23-\x5b\x5d-\x7e]|\\["\\])*)"/y;
const TOKEN = /[A-Za-z*][!#$%&'*+.^_`|~0-9A-Za-z:/-]*/y;
const BYTES = /:([A-Za-z0-9+/]*={0,2}):/y;
const BOOLEAN = /\?([01])/y;
const DATE = /@(-?\d{1,15})(?![\d.])/y;
const DISPLAY = /%"((?:[\x20\x21\x23\x24\x26-\x7e]|%[0-9a-f]{2})*)"/y;
const SPACES = / */y;
const BLANKS = /[ \t]*/y;

/** Reads the two kinds of structured fields that tell limits: lists and dictionaries whose members are single items. */
class Reader {
  readonly #text: string;
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  /** Members between commas, to the very end. */
  members<T>(member: () => T): T[] {
    const found: T[] = [];
    this.#match(SPACES);
    if (this.#over) return found;
    for (;;) {
      found.push(member());
      this.#match(BLANKS);
      if (this.#over) return found;
      this.#expect(",");
      this.#match(BLANKS);
      if (this.#over) throw new Malformed();
    }
  }

  item(): Item {
    return { ...this.#bare(), parameters: this.#parameters() };
  }

  /** A member of a dictionary: a key, and an item or the mere key. */
  entry(): [string, Item] {
    const key = this.#key();
    if (this.#text[this.#at] === "=") {
      this.#at++;
      return [key, this.item()];
    }
    return [key, { kind: "boolean", value: true, parameters: this.#parameters() }];
  }

  #parameters(): Item["parameters"] {
    const parameters = new Map<string, Item["value"]>();
    while (this.#text[this.#at] === ";") {
      this.#at++;
      this.#match(SPACES);
      const key = this.#key();
      let value: Item["value"] = true;
      if (this.#text[this.#at] === "=") {
        this.#at++;
        value = this.#bare().value;
      }
      parameters.set(key, value);
    }
    return parameters;
  }

  #bare(): Bare {
    const of = (kind: Item["kind"], pattern: RegExp): [Item["kind"], RegExpExecArray] | undefined => {
      const match = this.#match(pattern);
      return match === null ? undefined : [kind, match];
    };
    const found =
      of("number", NUMBER) ??
      of("string", STRING) ??
      of("token", TOKEN) ??
      of("bytes", BYTES) ??
      of("boolean", BOOLEAN) ??
      of("date", DATE) ??
      of("display", DISPLAY);
    if (found === undefined) throw new Malformed();
    const [kind, [whole, inner = ""]] = found;
    if (kind === "number") return { kind, value: Number(whole) };
    if (kind === "string") return { kind, value: inner.replace(/\\(.)/g, "$1") };
    if (kind === "boolean") return { kind, value: inner === "1" };
    if (kind === "date") return { kind, value: Number(inner) };
    if (kind === "display") return { kind, value: decodeURIComponent(inner) };
    return { kind, value: kind === "token" ? whole : atob(inner) };
  }

  #key(): string {
    const match = this.#match(KEY);
    if (match === null) throw new Malformed();
    return match[0];
  }

  #match(pattern: RegExp): RegExpExecArray | null {
    pattern.lastIndex = this.#at;
    const match = pattern.exec(this.#text);
    if (match !== null) this.#at = pattern.lastIndex;
    return match;
  }

  #expect(character: string): void {
    if (this.#text[this.#at] !== character) throw new Malformed();
    this.#at++;
  }

  get #over(): boolean {
    return this.#at >= this.#text.length;
  }
}

class Malformed extends Error {}

function read<T>(text: string, how: (reader: Reader) => T): T | undefined {
  try {
    return how(new Reader(text));
  } catch {
    // A Malformed; or a display string that is no UTF-8, or bytes that are no base64.
    return undefined;
  }
}

/**
 * A List whose members are Items, or `undefined` where it is malformed: then the whole field is to be ignored. Inner lists
 * are malformed here; no field of limits has them.
 */
export const list = (text: string): Item[] | undefined => read(text, (reader) => reader.members(() => reader.item()));

/** A Dictionary whose members are Items, or `undefined` where it is malformed. */
export const dictionary = (text: string): ReadonlyMap<string, Item> | undefined =>
  read(text, (reader) => new Map(reader.members(() => reader.entry())));
