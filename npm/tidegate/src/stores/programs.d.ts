/** The text of a program that runs inside a database. */
declare module "*.sql" {
  const text: string;
  export default text;
}

declare module "*.lua" {
  const text: string;
  export default text;
}
