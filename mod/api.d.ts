// What a mod of voxeld is given. `voxeld mod new` writes this file, for editors: it is no part of the mod.
// A mod has JavaScript without Date, Promise, modules, timers of its own, files and network. Variables do not keep their
// values between events. Math.random is there.

/** A place in the world, in blocks: [x, y, z]. y is up. */
type Pos = [x: number, y: number, z: number];

/** A player. Names may change: this does not. */
type Player = string & { readonly player: unique symbol };

interface ModEvent {
  /** When it happened, in milliseconds since 1970. */
  readonly time: number;
  readonly pos: Pos;
}

/** A player has used a block (opened or closed a door, a gate, a trapdoor), or placed it. */
interface BlockEvent extends ModEvent {
  readonly kind: "use" | "place";
  /** The block as it is now. */
  readonly block: Block;
  readonly player: Player;
}

/** A player has taken a block away. */
interface BreakEvent extends ModEvent {
  readonly kind: "break";
  /** What was there, unless it was never edited. */
  readonly block?: Block;
  readonly player: Player;
}

/** A timer that the mod has set is due. */
interface TimerEvent extends ModEvent {
  readonly kind: "timer";
  /** What the mod gave the timer. */
  readonly data?: string;
}

/**
 * The land around an event. What a function does to it happens at once and as a whole after the function has returned; or
 * not at all, if the function throws, or if another block has changed in the meantime.
 */
interface Land {
  /** The block at a place up to 3 blocks away in each direction; undefined if it cannot be seen. */
  block(pos: Pos): Block | undefined;
  /** Where a block is, up to 3 blocks away in each direction. */
  find(block: Block): Pos[];
  /** Puts a block there; "air" takes it away. */
  set(pos: Pos, block: Block): void;
  /** Sets a timer, one for each place: another one there is replaced. */
  timer(pos: Pos, seconds: number, data?: string): void;
  /** Takes the timer of a place back. */
  cancel(pos: Pos): void;
  /** Shows a player a line. */
  tell(player: Player, text: string): void;
}

/** Says what is to happen at an event. mod.toml lists the same events. */
declare function on(event: "use" | "place", what: (event: BlockEvent, land: Land) => void): void;
declare function on(event: "break", what: (event: BreakEvent, land: Land) => void): void;
declare function on(event: "timer", what: (event: TimerEvent, land: Land) => void): void;
