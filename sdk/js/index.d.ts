/** A block: X, Y (its height), Z. */
export type Position = [number, number, number];

export interface Edit {
  at: Position;
  block: string;
}

/** An edit that is made only if the block is still what it was. */
export interface BulkEdit extends Edit {
  from: string;
}

export interface Change {
  id: string;
  time_ms: number;
  by: string;
  name: string;
  at: Position;
  old: string;
  new: string;
}

export interface Line {
  id: string;
  time_ms: number;
  by: string;
  name: string;
  service: boolean;
  text: string;
}

/** Cursor is from where another stream goes on. */
export type Event = { cursor: string } & (
  | { kind: "edit"; data: Change }
  | { kind: "chat"; data: Line }
  | { kind: "players"; data: { names: string[] } }
  | { kind: "join" | "leave"; data: { name: string } }
  | { kind: "ready"; data: Record<string, never> }
  | { kind: "end"; data: { code: string; message: string } }
);

/** Why a request was refused: a code of docs/services.md. Status is that of HTTP. */
export class Refused extends Error {
  status: number;
  code: string;
}

/** A service at one or more nodes of a world. What one does not answer is sent to the next. */
export class Client {
  /** Patience is how long a request is sent again, in milliseconds; a minute if it is not named. */
  constructor(nodes: string | string[], key: string, options?: { patience?: number });
  /** Returns the answer to a GET request, as openapi.json describes it. */
  get(path: string, query?: Record<string, string>): Promise<unknown>;
  /** Changes blocks. Returns for each undefined, or why it was refused. */
  edit(edits: Edit[]): Promise<(string | undefined)[]>;
  /** Changes up to 2,048 blocks of a chunk, all or none. */
  bulk(edits: BulkEdit[]): Promise<{ seq: number; blocks: number }>;
  /** Shows a line to all players of the world. If no node answers it may have been shown. */
  chat(text: string): Promise<{ id: string; at_ms: number }>;
  /** Yields events until the signal is aborted, each edit and line once. After is the cursor of an event of before. */
  events(options?: {
    kinds?: ("edits" | "chat" | "players")[];
    box?: string;
    after?: string;
    signal?: AbortSignal;
  }): AsyncGenerator<Event, void>;
}
