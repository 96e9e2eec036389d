// A client of voxeld's HTTP API for services (docs/services.md), for Node.js 18 and later, without dependencies.
//
//   const world = new Client(["https://a.example.org", "https://b.example.org"], key);
//   await world.edit([{ at: [5, 80, 5], block: "brick" }]);
//   for await (const event of world.events()) console.log(event.kind, event.data);

/** The most blocks of one request. */
const batch = 64;

/** What is sent again, with the same numbers: the land or the node did not answer, or it was too much at once. */
const again = new Set([429, 503, 504]);

const pause = (ms, signal) =>
  new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal?.addEventListener("abort", () => (clearTimeout(timer), resolve()), { once: true });
  });

/** Why a request was refused: a code of docs/services.md. Status is that of HTTP. */
export class Refused extends Error {
  constructor(status, code, message) {
    super(`${code}: ${message}`);
    this.status = status;
    this.code = code;
  }
}

/** A service at one or more nodes of a world. What one does not answer is sent to the next. */
export class Client {
  #nodes;
  #key;
  #patience;
  #seq = 0;
  #editing = Promise.resolve();

  constructor(nodes, key, { patience = 60_000 } = {}) {
    this.#nodes = [nodes].flat();
    for (const node of this.#nodes) {
      const { protocol, hostname } = new URL(node);
      if (protocol !== "https:" && !/^(localhost|127(\.\d+){3}|\[::1\])$/.test(hostname))
        throw new Error(`${node}: a key is sent over https only, or on this machine`);
    }
    this.#key = key;
    this.#patience = patience;
  }

  /** Returns the answer to a GET request, such as get("blocks", { box: "0,60,0:15,70,15" }). */
  get(path, query = {}) {
    const text = new URLSearchParams(query).toString();
    return this.#request(path + (text && "?" + text));
  }

  /** Changes blocks. Returns for each undefined, or why it was refused. */
  edit(edits) {
    return this.#inTurn(async () => {
      const results = [];
      for (let first = 0; first < edits.length; first += batch) {
        const some = edits.slice(first, first + batch);
        const answer = await this.#request("edits", { seq: this.#take(some.length), edits: some });
        results.push(...answer.results.map((result) => result.error));
      }
      return results;
    });
  }

  /** Changes up to 2,048 blocks of a chunk from what they are, all or none. */
  bulk(edits) {
    return this.#inTurn(() => this.#request("bulk", { seq: this.#take(1), edits }));
  }

  /** Shows a line to all players of the world. If no node answers it may have been shown. */
  chat(text) {
    return this.#request("chat", { text }, false);
  }

  /** Yields events until the signal is aborted, each edit and line once. After is the cursor of an event of before. */
  async *events({ kinds, box, after, signal } = {}) {
    const seen = new Set();
    while (!signal?.aborted) {
      try {
        for await (const event of this.#stream({ kinds, box, after, signal })) {
          after = event.cursor;
          const { id } = event.data;
          if (id !== undefined) {
            if (seen.has(id)) continue;
            if (seen.add(id).size > 100_000) seen.delete(seen.values().next().value);
          }
          yield event;
        }
      } catch (error) {
        if (error instanceof Refused && !again.has(error.status)) throw error;
      }
      this.#next();
      await pause(1000, signal);
    }
  }

  /** Runs what changes blocks after what did before: numbers must arrive in order. */
  #inTurn(task) {
    const result = this.#editing.then(task);
    this.#editing = result.catch(() => {});
    return result;
  }

  /** Returns the first of so many numbers for edits: microseconds since 1970, above those before. */
  #take(count) {
    const first = Math.max(this.#seq, Date.now() * 1000);
    this.#seq = first + count;
    return first;
  }

  #next() {
    this.#nodes.push(this.#nodes.shift());
  }

  async #open(path, body, headers, signal) {
    const answer = await fetch(this.#nodes[0].replace(/\/$/, "") + "/api/v1/" + path, {
      method: body === undefined ? "GET" : "POST",
      body: body === undefined ? undefined : JSON.stringify(body),
      headers: { Authorization: "Bearer " + this.#key, ...headers },
      redirect: "error", // it would have the key sent elsewhere
      signal,
    });
    if (answer.ok) return answer;
    const { error } = await answer.json();
    throw new Refused(answer.status, error.code, error.message);
  }

  async #request(path, body, repeat = true) {
    for (const end = Date.now() + this.#patience; ; ) {
      try {
        return await (await this.#open(path, body, {}, AbortSignal.timeout(30_000))).json();
      } catch (error) {
        const unanswered = error instanceof Refused ? again.has(error.status) : repeat;
        if (!unanswered || Date.now() > end) throw error;
      }
      this.#next();
      await pause(500);
    }
  }

  async *#stream({ kinds, box, after, signal }) {
    const query = new URLSearchParams();
    if (kinds) query.set("kinds", kinds.join(","));
    if (box) query.set("box", box);
    const answer = await this.#open("events?" + query, undefined, after === undefined ? {} : { "Last-Event-ID": after }, signal);
    let rest = "";
    let event = {};
    for await (const text of answer.body.pipeThrough(new TextDecoderStream())) {
      const lines = (rest + text).split("\n");
      rest = lines.pop();
      for (const line of lines) {
        const [, name, value] = /^(\w*):? ?(.*)$/.exec(line);
        if (name === "id") event.cursor = value;
        else if (name === "event") event.kind = value;
        else if (name === "data") event.data = JSON.parse(value);
        else if (line === "" && event.kind) {
          if (event.kind === "end" && event.data.code !== "slow") throw new Refused(401, event.data.code, event.data.message);
          yield event;
          event = {};
        }
      }
    }
  }
}
