/** Keys, times and numbers as text. */

/**
 * Characters without their own glyph: controls, bidirectional and other invisible ones, spaces but the usual, and those
 * that HTML drops: at the ends, and before another.
 */
const INVISIBLE = /\\|[^\P{Z} ]|\p{C}|\p{DI}|^ | (?= |$)/gu;
const ESCAPE = /\\(?:(\\)|u\{([\da-f]{1,6})\})/gi;

/** A key in characters that can be seen: any other one is an escape such as `\u{202e}`. */
export const printable = (key: string): string =>
  key.replace(INVISIBLE, (char) => (char === "\\" ? "\\\\" : `\\u{${(char.codePointAt(0) as number).toString(16)}}`));

/** The key of a string that {@link printable} wrote, or a person. */
export const keyOf = (text: string): string =>
  text.replace(ESCAPE, (found, backslash: string | undefined, hex: string) => {
    if (backslash !== undefined) return backslash;
    const code = Number.parseInt(hex, 16);
    return code <= 0x10_ffff ? String.fromCodePoint(code) : found;
  });

const two = (value: number): string => String(value).padStart(2, "0");

/** The time of day; with its date if that is not today's. */
export function clock(ms: number, { millis = false, today = Date.now() } = {}): string {
  const date = new Date(ms);
  const time = `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
  const fraction = millis ? `.${String(date.getMilliseconds()).padStart(3, "0")}` : "";
  const isToday = date.toDateString() === new Date(today).toDateString();
  const day = isToday ? "" : `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())} `;
  return day + time + fraction;
}

/** A wait in the two largest units. */
export function wait(ms: number): string {
  if (ms <= 999) return `${Math.ceil(ms)} ms`;
  const s = Math.ceil(ms / 100) / 10;
  if (s < 60) return `${s.toFixed(1)} s`;
  const [min, h] = [Math.floor(s / 60), Math.floor(s / 3600)];
  if (min < 60) return `${min} min ${Math.floor(s % 60)} s`;
  return h < 48 ? `${h} h ${min % 60} min` : `${Math.floor(h / 24)} d ${h % 24} h`;
}

const WHOLE = new Intl.NumberFormat("en");
const FRACTION = new Intl.NumberFormat("en", { maximumFractionDigits: 3 });
const PERCENT = new Intl.NumberFormat("en", { style: "percent", maximumSignificantDigits: 2 });

export const number = (value: number): string => (Number.isInteger(value) ? WHOLE : FRACTION).format(value);
export const share = (part: number, all: number): string => (all === 0 ? "–" : PERCENT.format(part / all));
export const tokens = (count: number): string => `${number(count)} ${count === 1 ? "token" : "tokens"}`;
export const label = (name: string | null): string => (name === null ? "other limits" : printable(name));
