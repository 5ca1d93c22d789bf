/** The program of `rows.sql`, as text. */
declare const text: string;
export default text;
