/** The figures as text, for a run's JSON. */
export function figures(run: unknown): string;
/** The README with the figures of a run between its marks. */
export function withFigures(text: string, run: unknown): string;
