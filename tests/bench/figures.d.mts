/** The figures as text, for what results.json holds. */
export function figures(suites: unknown): string;
/** The README with the figures between its marks. */
export function withFigures(text: string, suites: unknown): string;
