// Connects the chat of a world with one elsewhere: bridge.js NODE KEY WEBHOOK PORT
//
// Lines to the whole world are sent to a webhook as Discord takes them: {"username": …, "content": …}. What is posted to
// the port here, {"username": …, "content": …}, is shown to the world. Needs the scopes read and chat.

import { createServer } from "node:http";

import { Client } from "../index.js";

const [node, key, webhook, port] = process.argv.slice(2);
if (!port) {
  console.error("usage: bridge.js NODE KEY WEBHOOK PORT");
  process.exit(2);
}
const world = new Client(node, key);

const server = createServer(async (request, response) => {
  try {
    let body = "";
    for await (const part of request) if ((body += part).length > 10_000) throw new Error("too long");
    const { username, content } = JSON.parse(body);
    await world.chat(`${username}: ${content}`.replaceAll(/\s+/g, " ").slice(0, 80));
    response.writeHead(204);
  } catch (error) {
    response.writeHead(400);
    console.error(error.message);
  }
  response.end();
});
server.listen(Number(port), "127.0.0.1", () => console.log(`listening on ${server.address().port}`));

for await (const { kind, data } of world.events({ kinds: ["chat", "players"] })) {
  const line = {
    chat: () => ({ username: data.name, content: data.text }),
    join: () => ({ username: "world", content: `${data.name} has come.` }),
    leave: () => ({ username: "world", content: `${data.name} has left.` }),
  }[kind];
  if (!line || data.service) continue; // what came from elsewhere is known there
  await fetch(webhook, { method: "POST", body: JSON.stringify(line()), headers: { "Content-Type": "application/json" } }).catch((error) =>
    console.error(error.message),
  );
}
