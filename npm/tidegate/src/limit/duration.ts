/** One second, in ms. */
export const SECOND = 1000;
/** One minute, in ms. */
export const MINUTE: number = 60 * SECOND;
/** One hour, in ms. */
export const HOUR: number = 60 * MINUTE;
/** One day of 24 hours, in ms. */
export const DAY: number = 24 * HOUR;
/** One week of 7 days, in ms. */
export const WEEK: number = 7 * DAY;
