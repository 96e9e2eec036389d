// What the server says, and the templates by which it is said in a language.

/** What the server says to the player, in English. */
export interface Notice {
  text: string
  code?: string
  args?: Record<string, string>
  /** Notices that are parts of this one. */
  parts?: Record<string, Notice>
}

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
