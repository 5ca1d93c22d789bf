/** The program of `decide.sql`, as text. */
declare const text: string;
export default text;
