/** The program of `program.sql`, as text. */
declare const text: string;
export default text;
