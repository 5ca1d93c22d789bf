export const FOLDERS: Readonly<Record<string, { text: string; first: string[] }>>;
