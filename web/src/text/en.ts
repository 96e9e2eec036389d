// The texts in English, and so the shape of the texts in every language. These are needed before the player has joined, or at once
// after it; en-later.ts has all others.

/** A line of the help: keys, with actions in braces, and what they do. */
export type HelpLine = [keys: string, what: string]

export const en = {
  /** Of index.html, which has the same texts in English. */
  page: {
    world: 'The world',
    motto: 'One world, hosted by everyone',
    name: 'Your name',
    guest: 'Play as a guest (your name isn’t protected)',
    bringKey: 'Bring your key from another device',
    play: 'Play',
  },
  keyImported: 'Your key is here. Press Play.',
  joining: 'Joining…',
  noName: 'Type a name first.',
  badName: 'Use 1–20 letters, digits, _ or -',
  noWebGL: 'Your browser doesn’t support WebGL 2. Try a current Chrome, Firefox or Safari.',
  gameMissing: 'The game could not be loaded. Check your connection and reload the page.',
  mapMissing: 'The map could not be loaded. Reload the page.',
  partMissing: 'A part of the page could not be loaded. Reload the page.',

  /** Returns what is written on a key, as far as its code says; see settings/bindings.ts. */
  key: (code: string) =>
    code
      .replace('Control+', 'Ctrl+')
      .replace(/(^|\+)(Key|Digit)/, '$1')
      .replace(/^Arrow(.*)$/, '$1 arrow')
      .replace(/^(Shift|Control|Alt|Meta)(Left|Right)$/, '$2 $1')
      .replace(/^Escape$/, 'Esc')
      .replace(/^Mouse(\d)$/, (_, n: number) => ['Left click', 'Middle click', 'Right click'][n] ?? `Mouse ${n}`)
      .replace(/^Wheel/, 'Wheel '),
  noKey: 'no key',
  arrowKeys: 'arrow keys',
  /** The keys that the title screen shows: what a newcomer needs comes first. */
  help: {
    walk: ['{forward} {left} {back} {right}', 'walk'],
    look: ['Mouse, {lookUp} {lookLeft} {lookDown} {lookRight}', 'look around'],
    jump: ['{jump}', 'jump / fly up'],
    fly: ['{fly}, {jump} {jump}', 'fly'],
    blocks: ['{break}, {place}', 'break, place'],
    inventory: ['{blocks}', 'blocks'],
    chat: ['{chat}', 'chat, /help for commands'],
    map: ['{map}', 'map'],
    build: ['{build}', 'walls, boxes, copies'],
    undo: ['{undo}, {redo}', 'undo, redo'],
    menu: ['{menu}', 'menu, all keys'],
  } satisfies Record<string, HelpLine>,
  touchHelp: {
    tap: ['Tap', 'place, hit a player'],
    hold: ['Hold', 'break'],
    drag: ['Drag', 'look around'],
    stick: ['Stick', 'walk; push it further to run'],
    swipe: ['Swipe the hotbar', 'choose a block'],
    hammer: ['Hammer', 'walls, boxes, copies, undo'],
  } satisfies Record<string, HelpLine>,

  chat: 'Chat',
  /** The channels of the chat: on the button, and in the empty line. */
  channels: {
    near: { name: 'Nearby', message: 'Message players nearby' },
    world: { name: 'World', message: 'Message all players of the world' },
  },
  switchChannel: 'Who reads it (Tab)',
  ignoreHelp: 'stop showing what a player writes, or show it again',
  hotbar: 'Hotbar',
  /** Returns what a block of the block table is called. */
  block: (name: string) => name,

  welcome: (name: string, world: string) => `Welcome to ${world}, ${name}.`,
  clickToLook: 'Click to look around.',
  flying: 'Flying: {jump} up, {sink} down',
  walking: 'Walking',
  soundsOn: 'Sounds on',
  soundsOff: 'Sounds off',
  hudHidden: '{hud} shows everything again.',
  noMap: 'This node has no map.',
  landMissing: 'Part of the land could not be loaded.',

  graphicsLost: 'The picture was lost. If it does not come back, reload the page.',
  graphicsRefused: 'Your browser cannot draw a part of the picture. Update it, or use another one.',
  connectionLost: 'Connection lost.',
  unanswered: 'The node does not answer.',
  keepTrying: 'The node does not answer. Press Play to keep trying.',
  unreadable: 'The server sent an unreadable message.',
  silent: 'The server stopped responding.',
  nextSilent: 'The next node did not answer.',
  otherWorld: 'The next node belongs to another world.',
  reconnecting: (reason: string) => `${reason} Reconnecting…`,
  reconnected: 'Reconnected.',
  unsaved: (edits: number) => (edits === 1 ? '1 edit may be lost.' : `${edits} edits may be lost.`),
  notSent: 'Not sent: you’re offline.',
  tooLong: 'Not sent: that is too long.',
  nameTaken: (name: string, shown: string) => `The name ${name} is another player’s. Others see you as ${shown}.`,
  notPossible: 'Not possible while offline.',

  nobodyElse: 'Nobody else is here',
  players: (count: number) => `${count} players`,
  playersMissing: 'Some land did not answer: there may be others.',
  guest: 'guest',
  you: 'you',

  /** Why the server refused an edit, a hit or a gift, by its code. */
  refusals: {
    out_of_world: 'The world ends there.',
    out_of_reach: 'That is too far away.',
    unknown_block: 'This world does not have that block yet.',
    unbreakable: 'That block cannot be broken.',
    not_placeable: 'That block cannot be placed.',
    inside_player: 'A player is standing there.',
    rate: 'Too many edits at once.',
    stale: 'That edit came too late.',
    not_loaded: 'This area is still loading.',
    unavailable: 'This area cannot be reached right now.',
    quarantined: 'This area is locked for repair.',
    not_allowed: 'You may not build here.',
    outside_border: 'That is outside the border of the world.',
    claimed: 'This land is claimed by another player.',
    muted: 'You are muted, and cannot write on signs.',
    bad_text: 'A sign cannot show that text.',
    too_many_signs: 'There are too many signs with text here.',
    changed: 'A block there has just been changed.',
    chunk_full: 'Too much has been changed here.',
    unsigned: 'This edit could not be verified. Reload the page.',
  },
  /** Those of hits and gifts that differ. */
  denials: {
    unknown_player: 'That player is no longer here.',
    behind_block: 'There is a block in the way.',
    unavailable: 'That did not go through. Try again.',
  },
  refused: (code: string) => `The world refused that (${code}).`,
  /** Why the server closed the connection. */
  failures: {
    bad_name: 'Use 1–20 letters, digits, _ or -',
    bad_key: 'Your key is damaged. Play as a guest, or clear this page’s data to get a new one.',
    bad_signature: 'The world could not verify your key.',
    wrong_version: 'This page is older or newer than the world. Reload it.',
    no_guests: 'Only players with a key can join this world. Untick “Play as a guest”.',
    replaced: 'You joined from somewhere else.',
    full: 'Too many players from your internet address. The node’s operator can allow more.',
    rate: 'You did too much at once.',
    slow: 'Your connection is too slow.',
    timeout: 'You sent nothing for too long.',
    name_taken: 'Another player or a guest has that name. Choose another one.',
    banned: 'You are banned from this world, or were kicked.',
    not_allowed: 'Only players with a role can join this world.',
    shutting_down: 'The node is stopping. Everything that was confirmed is saved.',
    unreadable: 'The disk of the node does not answer. Try again later.',
    internal: 'The node has a problem.',
  },
  closed: (code: string) => `The world closed the connection (${code}).`,
  /** Why the server moved the player. */
  corrections: {
    not_finite: 'Your position was reset.',
    out_of_world: 'The world ends here.',
    outside_border: 'The world ends here.',
    too_fast: 'You moved too fast and were put back.',
    claimed: 'Only members may enter this claim.',
  },
}

export type Texts = typeof en
