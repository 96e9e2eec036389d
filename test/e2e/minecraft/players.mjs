// Players of Minecraft for the Go tests: mineflayer, driven by lines of JSON on standard input, each answered by one on standard output.
// A line is [number, player, what, ...arguments]; the answer [number, result] or [number, null, error].
import { createInterface } from 'node:readline'
import mineflayer from 'mineflayer'
import vec3 from 'vec3'

const players = new Map()

const join = (name, host, port, version = '1.20.2') => {
  const bot = mineflayer.createBot({
    host,
    port,
    username: name,
    auth: 'offline',
    version,
    viewDistance: 'short',
    hideErrors: true,
    logErrors: false,
  })
  const p = { bot, chat: [], forced: 0, spawned: false, ended: '', changed: 0, built: 0, opened: 0, walk: null }
  players.set(name, p)
  bot.on('message', (m) => p.chat.push(m.toString()))
  bot.on('forcedMove', () => p.forced++)
  bot.once('spawn', () => (p.spawned = true))
  bot.on('blockUpdate', () => p.changed++)
  bot.on('kicked', (reason) => (p.ended ||= `kicked: ${reason}`))
  bot._client.on('disconnect', (packet) => (p.ended ||= `refused: ${packet.reason}`))
  bot.on('error', (err) => (p.ended ||= `error: ${err.message}`))
  bot.on('end', (reason) => {
    const note = () => (p.ended ||= `end: ${reason}`)
    // The library emits this as soon as the socket has ended, which may be before it has decompressed what it received:
    // the last packet, which says why, is parsed later.
    if (bot._client.socket?.readableEnded) bot._client.deserializer.once('end', note)
    else note()
  })
  bot.on('physicsTick', () => p.walk?.())
  bot._client.on('open_sign_entity', () => p.opened++)
  bot._client.on('tags', ({ tags }) => (p.tags = tags))
}

// look returns what a player sees; `from` is how many lines of the chat are known.
const look = ({ bot, chat, forced, spawned, ended, changed, built, opened }, from = 0) => ({
  spawned,
  ended,
  forced,
  changed,
  built,
  opened,
  chat: chat.slice(from),
  at: bot.entity?.position ? [bot.entity.position.x, bot.entity.position.y, bot.entity.position.z] : null,
  time: bot.time?.timeOfDay ?? 0,
  online: Object.keys(bot.players ?? {}),
  bodies: Object.values(bot.entities ?? {})
    .filter((e) => e.type === 'player' && e !== bot.entity)
    .map((e) => ({
      name: e.username ?? '',
      x: e.position.x,
      y: e.position.y,
      z: e.position.z,
      held: e.equipment[0]?.name ?? '',
      sneaks: e.metadata[6] === 5,
    })),
})

const block = ({ bot }, x, y, z) => bot.blockAt(vec3(x, y, z))?.name ?? ''

// state returns a block's properties, as Minecraft has them.
const state = ({ bot }, x, y, z) => bot.blockAt(vec3(x, y, z))?.getProperties() ?? {}
// tagged returns whether a block has a tag: the game's own client goes by them, mineflayer by names.
const tagged = ({ bot, tags }, block, tag) =>
  tags
    .find((registry) => registry.tagType === 'minecraft:block')
    .tags.find(({ tagName }) => tagName === `minecraft:${tag}`)
    .entries.includes(bot.registry.blocksByName[block].id)

// sign returns the lines of a sign, as the server has sent them.
const sign = ({ bot }, x, y, z) => bot.blockAt(vec3(x, y, z))?.blockEntity?.front_text?.messages ?? []

// write writes on a sign, once the server has asked for it.
const write = ({ bot, opened }, x, y, z, text) => {
  if (opened === 0) throw new Error('no sign was opened')
  bot.updateSign(bot.blockAt(vec3(x, y, z)), text)
}

const choose = async ({ bot }, item) => {
  const Item = bot.registry.itemsByName[item]
  const ItemOf = (await import('prismarine-item')).default(bot.registry)
  await bot.creative.setInventorySlot(36, new ItemOf(Item.id, 1))
  bot.setQuickBarSlot(0)
}

const place = ({ bot }, x, y, z) => bot.placeBlock(bot.blockAt(vec3(x, y, z)), vec3(0, 1, 0))

// use clicks on a block.
const use = ({ bot }, x, y, z) => bot.activateBlock(bot.blockAt(vec3(x, y, z)))

const dig = ({ bot }, x, y, z) => bot.dig(bot.blockAt(vec3(x, y, z)), 'ignore')

// put places the block in the hand beside another one, also in the air.
const put = ({ bot }, x, y, z, sequence = 1) =>
  bot._client.write('block_place', {
    hand: 0,
    location: vec3(x, y - 1, z),
    direction: 1,
    cursorX: 0.5,
    cursorY: 1,
    cursorZ: 0.5,
    insideBlock: false,
    sequence,
  })

// fly makes a player fly to and fro over x, at a height, and build and break a block every second.
const fly = (p, over, height, speed) => {
  const { bot } = p
  bot.creative.startFlying()
  let forward = true
  let ticks = Math.floor(Math.random() * 20)
  let sequence = 100
  let last
  p.walk = () => {
    const at = bot.entity.position
    bot.entity.velocity.set(0, 0, 0)
    if (at.y < height) at.y = Math.min(height, at.y + speed)
    else at.x += forward ? speed : -speed
    if (at.x > over + 20) forward = false
    if (at.x < over - 20) forward = true
    if (++ticks % 20 === 0) {
      const location = last ?? vec3(Math.floor(at.x), Math.floor(at.y) - 2, Math.floor(at.z) + 2)
      if (last) bot._client.write('block_dig', { status: 0, location, face: 1, sequence: ++sequence })
      else put(p, location.x, location.y, location.z, ++sequence)
      last = last ? undefined : location
      p.built++
    }
  }
}

// step makes a player walk in a direction for some time, on their feet.
const step = async ({ bot }, yaw, ms) => {
  await bot.look(yaw, 0, true)
  bot.setControlState('forward', true)
  await new Promise((done) => setTimeout(done, ms))
  bot.clearControlStates()
}

const actions = {
  look,
  block,
  state,
  tagged,
  sign,
  write,
  choose,
  place,
  use,
  dig,
  put,
  fly,
  step,
  sneak: ({ bot }, sneaks) => bot.setControlState('sneak', sneaks),
  say: ({ bot }, text) => bot.chat(text),
  leave: ({ bot }) => bot.quit(),
}

for await (const line of createInterface({ input: process.stdin })) {
  const [number, name, what, ...args] = JSON.parse(line)
  const answer = (result, error) =>
    process.stdout.write(JSON.stringify(error ? [number, null, error] : [number, result ?? null]) + '\n')
  if (what === 'join') {
    join(name, ...args)
    answer()
    continue
  }
  Promise.resolve()
    .then(() => actions[what](players.get(name), ...args))
    .then(answer, (err) => answer(null, String(err?.message ?? err)))
}
process.exit(0)
