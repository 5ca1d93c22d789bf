/** The program of `calls.sql`, as text. */
declare const text: string;
export default text;
