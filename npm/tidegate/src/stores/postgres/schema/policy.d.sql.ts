/** The program of `policy.sql`, as text. */
declare const text: string;
export default text;
