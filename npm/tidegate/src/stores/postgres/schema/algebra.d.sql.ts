/** The program of `algebra.sql`, as text. */
declare const text: string;
export default text;
