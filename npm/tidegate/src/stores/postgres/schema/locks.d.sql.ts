/** The program of `locks.sql`, as text. */
declare const text: string;
export default text;
