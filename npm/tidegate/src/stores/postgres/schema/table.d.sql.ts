/** The program of `table.sql`, as text. */
declare const text: string;
export default text;
