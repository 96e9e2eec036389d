/** What the server says, in a language. */
export interface Templates {
  /** By code, in the form that package wire/notice describes. */
  notices: Partial<Record<string, string>>
  /** The titles of groups of commands. */
  groups: Partial<Record<string, string>>
  /** What commands do. */
  commands: Partial<Record<string, string>>
  /** The arguments of commands, in capitals, and other words. */
  words: Partial<Record<string, string>>
}
