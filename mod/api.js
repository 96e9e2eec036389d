// What mods program against: api.d.ts describes it. It is loaded before the mod's script, and its value is the function
// that call.go calls. It runs where the mod's script runs: nothing here guards anything.
"use strict";
(() => {
  const kinds = ["use", "place", "break", "timer"];
  const radius = 3;
  const side = 2 * radius + 1;
  const handlers = new Map();

  globalThis.on = (kind, handler) => {
    if (!kinds.includes(kind)) throw new TypeError(`on: there is no event ${JSON.stringify(kind)}, but ${kinds.join(", ")}`);
    if (typeof handler !== "function") throw new TypeError(`on("${kind}"): want a function`);
    if (handlers.has(kind)) throw new TypeError(`on("${kind}"): it has a function already`);
    handlers.set(kind, handler);
  };

  const isPos = (pos) => Array.isArray(pos) && pos.length === 3 && pos.every(Number.isInteger);

  /** Returns what the handler may see and do, and the list of what it does. */
  const landOf = ({ event, names, cells }) => {
    const [x0, y0, z0] = event.pos.map((n) => n - radius); // of the first cell
    const effects = [];
    const changed = new Map();
    const seen = (pos) => {
      if (!isPos(pos)) throw new TypeError(`${JSON.stringify(pos)} is not a position: want [x, y, z], three integers`);
      const x = pos[0] - x0;
      const y = pos[1] - y0;
      const z = pos[2] - z0;
      if (x < 0 || x >= side || y < 0 || y >= side || z < 0 || z >= side) return undefined;
      return names[cells.charCodeAt((y * side + z) * side + x) - 48] ?? undefined;
    };
    const land = {
      block: (pos) => changed.get(String(pos))?.to ?? seen(pos),
      find: (block) => {
        const found = [...changed.values()].filter(({ to }) => to === block).map(({ pos }) => pos);
        const cell = String.fromCharCode(names.indexOf(block) + 48);
        for (let i = cells.indexOf(cell); i >= 0; i = cells.indexOf(cell, i + 1)) {
          const pos = [x0 + (i % side), y0 + Math.floor(i / side / side), z0 + (Math.floor(i / side) % side)];
          if (changed.size === 0 || !changed.has(String(pos))) found.push(pos);
        }
        return found;
      },
      set: (pos, to) => {
        const from = seen(pos);
        if (typeof to !== "string") throw new TypeError("set: want a position and the name of a block");
        if (from === undefined) {
          throw new RangeError(`set: ${JSON.stringify(pos)} is out of sight: a mod sees ${radius} blocks around the event`);
        }
        const before = changed.get(String(pos));
        if (before) before.to = to;
        else if (from !== to) {
          const set = { pos: [...pos], from, to };
          changed.set(String(pos), set);
          effects.push({ set });
        }
      },
      timer: (pos, seconds, data = "") => {
        if (!isPos(pos) || !(seconds > 0) || typeof data !== "string") {
          throw new TypeError("timer: want a position, seconds, and perhaps a text");
        }
        effects.push({ timer: { pos: [...pos], after: Math.max(1, Math.round(seconds * 1000)), data } });
      },
      cancel: (pos) => {
        if (!isPos(pos)) throw new TypeError("cancel: want a position");
        effects.push({ timer: { pos: [...pos], after: 0, data: "" } });
      },
      tell: (player, text) => {
        if (typeof player !== "string") throw new TypeError("tell: want a player, such as event.player, and a text");
        effects.push({ message: { player, text: String(text) } });
      },
    };
    return { land, effects };
  };

  // Random numbers of a call: xorshift32, from the seed that it is given.
  let state = 1;
  Math.random = () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) / 2 ** 32;
  };

  const failed = (e) => {
    const where = /[\w.-]+:\d+:\d+/.exec(e?.stack ?? "");
    return String(e) + (where ? ` (${where[0]})` : "");
  };

  const answer = (input) => {
    try {
      const { land, effects } = landOf(input);
      handlers.get(input.event.kind)?.(input.event, land);
      return { effects };
    } catch (e) {
      return { error: failed(e) };
    }
  };

  return (text) => {
    if (text === "") return JSON.stringify([...handlers.keys()]);
    const { seed, events } = JSON.parse(text);
    state = seed;
    return JSON.stringify(events.map(answer));
  };
})();
