/** The program of `run.sql`, as text. */
declare const text: string;
export default text;
