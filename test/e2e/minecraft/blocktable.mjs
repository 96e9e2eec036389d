// Writes blocktable/minecraft_table.go, or the file that is named: the states and items of Minecraft Java 1.20.2 that our blocks become, which
// of our blocks each item becomes, and the tags of the blocks that are shown. go generate ./blocktable runs it.
import { writeFileSync } from 'node:fs'
import minecraftData from 'minecraft-data'

const data = minecraftData('1.20.2')

// Our blocks: the block there, its properties if they are not the usual ones, and the item if it has another name; null for none.
const images = {
  air: ['air', {}, null],
  stone: ['stone'],
  grass: ['grass_block'],
  dirt: ['dirt'],
  sand: ['sand'],
  water: ['water', {}, 'water_bucket'],
  log: ['oak_log'],
  leaves: ['oak_leaves'],
  snow: ['snow_block'],
  coal_ore: ['coal_ore'],
  iron_ore: ['iron_ore'],
  gold_ore: ['gold_ore'],
  diamond_ore: ['diamond_ore'],
  gravel: ['gravel'],
  clay: ['clay'],
  bedrock: ['bedrock'],
  planks: ['oak_planks'],
  cobble: ['cobblestone'],
  glass: ['glass'],
  brick: ['bricks'],
  lamp: ['sea_lantern'],
  ice: ['ice'],
  snowy_grass: ['grass_block', { snowy: 'true' }, 'podzol'],
  cactus: ['cactus'],
  birch_log: ['birch_log'],
  birch_leaves: ['birch_leaves'],
  pine_log: ['spruce_log'],
  pine_leaves: ['spruce_leaves'],
  dry_leaves: ['acacia_leaves'],
  tall_grass: ['grass'],
  dry_grass: ['wheat', { age: '7' }, 'wheat_seeds'],
  fern: ['fern'],
  poppy: ['poppy'],
  dandelion: ['dandelion'],
  cornflower: ['cornflower'],
  daisy: ['oxeye_daisy'],
  dead_bush: ['dead_bush'],
  reeds: ['sugar_cane'],
}

const firsts = new Set(Object.keys(images))

// Those with a colour, and those with a shape, whose states have the directions in their names. A world without them shows others.
const colours =
  'white light_grey grey black brown red orange yellow lime green cyan light_blue blue purple magenta pink'.split(' ')
for (const colour of colours) {
  const theirs = colour.replace('grey', 'gray')
  images[`${colour}_wool`] = [`${theirs}_wool`]
  images[`${colour}_concrete`] = [`${theirs}_concrete`]
  images[`${colour}_glass`] = [`${theirs}_stained_glass`]
}
Object.assign(images, {
  stone_bricks: ['stone_bricks'],
  mossy_cobble: ['mossy_cobblestone'],
  smooth_stone: ['smooth_stone'],
  sandstone: ['sandstone'],
  birch_planks: ['birch_planks'],
  pine_planks: ['spruce_planks'],
  marble: ['quartz_block'],
  basalt: ['polished_blackstone'],
  terracotta: ['terracotta'],
  roof_tiles: ['red_nether_bricks'],
  bookshelf: ['bookshelf'],
  straw: ['hay_block'],
  iron_block: ['iron_block'],
  gold_block: ['gold_block'],
  diamond_block: ['diamond_block'],
  plank_fence: ['oak_fence'],
  birch_plank_fence: ['birch_fence'],
  pine_plank_fence: ['spruce_fence'],
  glass_pane: ['glass_pane'],
  torch: ['torch'],
})
const opposite = { east: 'west', west: 'east', south: 'north', north: 'south' }
const turned = (facing) => (facing === 'east' ? '' : `_${facing}`)
const materials = {
  stone: 'stone',
  cobble: 'cobblestone',
  plank: 'oak',
  birch_plank: 'birch',
  pine_plank: 'spruce',
  brick: 'brick',
  stone_brick: 'stone_brick',
  sandstone: 'sandstone',
  smooth_stone: ['smooth_stone', 'polished_andesite'], // there are no stairs of smooth stone
  marble: 'quartz',
  basalt: 'polished_blackstone',
  roof_tile: 'red_nether_brick',
}
for (const [ours, theirs] of Object.entries(materials)) {
  const [slab, stairs] = [theirs].flat().length > 1 ? theirs : [theirs, theirs]
  images[`${ours}_slab`] = [`${slab}_slab`]
  images[`${ours}_slab_upper`] = [`${slab}_slab`, { type: 'top' }, null]
  for (const facing of Object.keys(opposite)) {
    images[`${ours}_stairs${turned(facing)}`] = [`${stairs}_stairs`, { facing }, ...(facing === 'east' ? [] : [null])]
    for (const [suffix, half, shape] of [
      ['outer', 'bottom', 'outer_right'],
      ['inner', 'bottom', 'inner_right'],
      ['upper', 'top', 'straight'],
      ['upper_outer', 'top', 'outer_right'],
      ['upper_inner', 'top', 'inner_right'],
    ])
      images[`${ours}_stairs_${suffix}_${facing}`] = [`${stairs}_stairs`, { facing, half, shape }, null]
  }
}
for (const [facing, rotation] of Object.entries({ east: '4', west: '12', south: '8', north: '0' })) {
  images[`sign${turned(facing)}`] = ['oak_sign', { rotation }, ...(facing === 'east' ? [] : [null])]
  images[`sign_on_the_${facing}`] = ['oak_wall_sign', { facing: opposite[facing] }, null]
}
for (const facing of Object.keys(opposite)) {
  const item = facing === 'east' ? [] : [null]
  images[`torch_on_the_${facing}`] = ['wall_torch', { facing: opposite[facing] }, null]
  images[`ladder${turned(facing)}`] = ['ladder', { facing: opposite[facing] }, ...item]
  for (const [ours, wood] of Object.entries({ plank: 'oak', birch_plank: 'birch', pine_plank: 'spruce' })) {
    const gate = `${wood}_fence_gate`
    images[`${ours}_fence_gate${turned(facing)}`] = [gate, { facing, open: 'false' }, ...item]
    images[`${ours}_fence_gate_open_${facing}`] = [gate, { facing, open: 'true' }, null]
  }
  for (const [ours, theirs] of [
    ['trapdoor', 'oak_trapdoor'],
    ['pine_trapdoor', 'spruce_trapdoor'],
  ]) {
    const image = (half, open) => [theirs, { facing: opposite[facing], half, open }, null]
    images[`${ours}${turned(facing)}`] = [...image('bottom', 'false').slice(0, 2), ...item]
    images[`${ours}_upper_${facing}`] = image('top', 'false')
    images[`${ours}_open_${facing}`] = image('bottom', 'true')
    images[`${ours}_open_upper_${facing}`] = image('top', 'true')
  }
  for (const [ours, theirs] of [
    ['door', 'oak_door'],
    ['pine_door', 'spruce_door'],
  ]) {
    images[`${ours}${turned(facing)}`] = [theirs, { facing, hinge: 'left', open: 'false' }, ...item]
    images[`${ours}_open_${facing}`] = [theirs, { facing, hinge: 'left', open: 'true' }, null]
  }
}

// The tags that decide in the game's own client what a block does: what can be climbed, what fences join, what makes grass snowy, what plants
// stand on (else they vanish for a moment when something is built beside them), what does not drip. Of each, the blocks that are images here.
const tags = {
  climbable: /^ladder$/,
  fences: /_fence$/,
  wooden_fences: /_fence$/,
  dirt: /^(dirt|grass_block)$/,
  sand: /^sand$/,
  dead_bush_may_place_on: /^(dirt|grass_block|sand|terracotta)$/,
  snow: /^snow_block$/,
  impermeable: /^glass$|_stained_glass$/,
}

// What items become that are no image of a block: the first that matches their name. Each has one here that any world has.
const others = [
  [/glass/, 'glass'],
  [/birch_(log|wood)|stripped_birch/, 'birch_log'],
  [/(spruce|dark_oak)_(log|wood)/, 'pine_log'],
  [/_(log|wood|stem|hyphae)$/, 'log'],
  [/(dark_oak|azalea|mangrove|jungle)_leaves|azalea/, 'leaves'],
  [/cherry_leaves/, 'dry_leaves'],
  [/coal_(ore|block)/, 'coal_ore'],
  [/(iron|copper|redstone)_(ore|block)/, 'iron_ore'],
  [/gold_(ore|block)/, 'gold_ore'],
  [/(diamond|emerald|lapis)_(ore|block)/, 'diamond_ore'],
  [/glowstone|lantern|froglight|shroomlight|redstone_lamp|magma_block|beacon/, 'lamp'],
  [/(packed|blue)_ice/, 'ice'],
  [/red_sand|sandstone|end_stone/, 'sand'],
  [/mud|clay|terracotta/, 'clay'],
  [/brick|nether/, 'brick'],
  [/cobble|mossy/, 'cobble'],
  [/(white|light_gray).*(wool|concrete|carpet)|quartz|calcite/, 'snow'],
  [/tulip|rose|peony|lilac|allium|orchid|azure|sapling|mushroom$/, 'poppy'],
  [/tall_grass|large_fern/, 'tall_grass'],
  [/sunflower|torchflower/, 'dandelion'],
]

const state = (block, want) => {
  const usual = block.defaultState - block.minStateId
  let rest = usual
  const digits = []
  for (const p of block.states.toReversed()) {
    digits.unshift(rest % p.num_values)
    rest = Math.floor(rest / p.num_values)
  }
  let index = 0
  block.states.forEach((p, i) => {
    const values = p.values ?? (p.type === 'bool' ? ['true', 'false'] : [...Array(p.num_values).keys()].map(String))
    const digit = p.name in want ? values.indexOf(want[p.name]) : digits[i]
    if (digit < 0) throw new Error(`${block.name} has no ${p.name} ${want[p.name]}`)
    index = index * p.num_values + digit
  })
  return block.minStateId + index
}

// How far the states of fences and panes are apart from those that are joined, and those of doors from their upper halves.
const apart = (block, want) => state(block, {}) - state(block, want)
const fences = Object.values(images).filter(([name]) => /_fence$|_pane$/.test(name))
const joined = ['east', 'west', 'south', 'north'].map((side) => {
  const [all, ...others] = new Set(fences.map(([name]) => apart(data.blocksByName[name], { [side]: 'true' })))
  if (others.length > 0) throw new Error(`the states of fences differ to the ${side}`)
  return all
})
const upper = apart(data.blocksByName.oak_door, { half: 'upper' })

const becomes = new Map(Object.keys(images).map((ours) => [ours, []]))
const rows = Object.entries(images).map(([ours, [name, properties = {}, item = name]]) => {
  const block = data.blocksByName[name]
  const id = item === null ? 0 : data.itemsByName[item].id
  if (id > 0) becomes.get(ours).push(id)
  return { ours, head: `"${ours}", minecraftImage{${state(block, properties)}, ${id}, ${block.emitLight}}` }
})
const shown = [...new Set(Object.values(images).map(([name]) => name))]
const tagged = Object.entries(tags).map(([tag, pattern]) => {
  const ids = shown.filter((name) => pattern.test(name)).map((name) => data.blocksByName[name].id)
  return `\t{"minecraft:${tag}", []uint16{${ids.join(', ')}}},`
})
// Blocks that any world has are images of the first kind; the items of others become one of those, too, in a world without the others.
const taken = new Set([...becomes].filter(([ours]) => firsts.has(ours)).flatMap(([, ids]) => ids))
for (const item of data.itemsArray) {
  const block = data.blocksByName[item.name]
  if (!block || taken.has(item.id)) continue
  const match = others.find(([pattern]) => pattern.test(item.name))
  const solid = block.boundingBox === 'block'
  const passable = ['poppy', 'tall_grass', 'dandelion']
  let ours = match?.[1]
  if (solid && (!ours || passable.includes(ours)))
    ours = { 'mineable/axe': 'planks', 'mineable/shovel': 'dirt' }[block.material] ?? 'stone'
  if (!solid && !passable.includes(ours)) continue
  becomes.get(ours).push(item.id)
}
// Items that are like a later block.
const likeLater = [
  [/^(stripped_)?birch_(planks|wood)/, 'birch_planks'],
  [/^(spruce|dark_oak)_planks/, 'pine_planks'],
  [/stained_glass_pane/, 'glass_pane'],
  [/(oak|jungle|acacia|mangrove|cherry|bamboo|crimson|warped).*_stairs/, 'plank_stairs'],
  [/_stairs/, 'stone_stairs'],
  [/(oak|jungle|acacia|mangrove|cherry|bamboo|crimson|warped).*_slab/, 'plank_slab'],
  [/_slab/, 'stone_slab'],
  [/_fence$/, 'plank_fence'],
  [/_fence_gate$/, 'plank_fence_gate'],
  [/dark_oak_trapdoor/, 'pine_trapdoor'],
  [/_trapdoor/, 'trapdoor'],
  [/dark_oak_door/, 'pine_door'],
  [/_door/, 'door'],
  [/torch$/, 'torch'],
  [/_sign$/, 'sign'],
  [/sandstone/, 'sandstone'],
  [/terracotta/, 'terracotta'],
]
const later = new Set([...becomes].filter(([ours]) => !firsts.has(ours)).flatMap(([, ids]) => ids.slice(0, 1)))
for (const item of data.itemsArray) {
  const powder = item.name.match(/^(.*)_concrete_powder$/)
  const ours = powder
    ? `${powder[1].replace('gray', 'grey')}_concrete`
    : likeLater.find(([pattern]) => pattern.test(item.name))?.[1]
  if (ours && data.blocksByName[item.name] && !later.has(item.id)) becomes.get(ours).push(item.id)
}

writeFileSync(
  process.argv[2] ?? new URL('../../../blocktable/minecraft_table.go', import.meta.url),
  `// Code generated by test/e2e/minecraft/blocktable.mjs; DO NOT EDIT.

package blocktable

// minecraftStates is the number of states in Minecraft.
const minecraftStates = ${Math.max(...data.blocksArray.map((b) => b.maxStateId)) + 1}

// MinecraftBucket is the item of an empty bucket, with which water is removed.
const MinecraftBucket = ${data.itemsByName.bucket.id}

// minecraftBeside is what a state becomes less by when the block is joined to the east, west, south or north, or is the upper half of a door.
var minecraftBeside = [...]uint16{${[...joined, upper].join(', ')}}

// minecraftTags name blocks by their numbers in the game's registry.
var minecraftTags = [...]MinecraftTag{
${tagged.join('\n')}
}

// minecraftRows are our blocks. Some are of later versions.
var minecraftRows = [...]minecraftRow{
${rows.map(({ ours, head }) => `\t{${head}, []uint16{${becomes.get(ours).join(', ')}}},`).join('\n')}
}
`,
)
