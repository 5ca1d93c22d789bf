/** The button of the site's page on React; the tests write it to a file unchanged. */
declare module "readme-block" {
  export function Send(props: { send: () => Promise<void> }): import("react").ReactElement;
}
