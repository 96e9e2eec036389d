// The server's table of blocks (package chunk). It is written by
//   go test ./chunk -run TestBlockTable -update
// and not by hand.

/** The names of the block textures, by layer. Those of wool, concrete and glass follow, 16 colours each. */
// prettier-ignore
export const TILES = ['unknown','stone','grass_top','grass_side','dirt','sand','water','log_top','log_side','leaves','snow','coal_ore','iron_ore','gold_ore','diamond_ore','gravel','clay','bedrock','planks','cobble','glass','brick','lamp','ice','snowy_grass_side','cactus_top','cactus_side','birch_log_top','birch_log_side','birch_leaves','pine_log_top','pine_log_side','pine_leaves','dry_leaves','tall_grass','dry_grass','fern','poppy','dandelion','cornflower','daisy','dead_bush','reeds','stone_bricks','mossy_cobble','smooth_stone','sandstone','birch_planks','pine_planks','marble','basalt','terracotta','roof_tiles','bookshelf','straw_top','straw','iron_block','gold_block','diamond_block','torch_top','torch','torch_end','wall_torch','ladder','door_top','door','pine_door_top','pine_door','sign','trapdoor','pine_trapdoor'] as const

/** The groups of the inventory. */
// prettier-ignore
export const GROUPS = ['','Nature','Plants','Building','Wool','Concrete','Glass','Slabs','Stairs','Fittings'] as const

/** What blocks sound like. */
// prettier-ignore
export const SOUNDS = ['stone','soft','leaves','wood','glass','metal','water'] as const

/** The colours of wool, concrete and glass. */
// prettier-ignore
export const COLOURS = ['White','Light grey','Grey','Black','Brown','Red','Orange','Yellow','Lime','Green','Cyan','Light blue','Blue','Purple','Magenta','Pink'] as const

/** The names of blocks, without states. One that begins with a space is that of 16, after their colours. */
// prettier-ignore
export const NAMES = 'Air,Stone,Grass,Dirt,Sand,Water,Log,Leaves,Snow,Coal ore,Iron ore,Gold ore,Diamond ore,Gravel,Clay,Bedrock,Planks,Cobble,Glass,Brick,Lamp,Ice,Snowy grass,Cactus,Birch log,Birch leaves,Pine log,Pine leaves,Dry leaves,Tall grass,Dry grass,Fern,Poppy,Dandelion,Cornflower,Daisy,Dead bush,Reeds, wool, concrete, glass,Stone bricks,Mossy cobble,Smooth stone,Sandstone,Birch planks,Pine planks,Marble,Basalt,Terracotta,Roof tiles,Bookshelf,Straw,Iron block,Gold block,Diamond block,Stone slab,Stone stairs,Cobble slab,Cobble stairs,Plank slab,Plank stairs,Birch plank slab,Birch plank stairs,Pine plank slab,Pine plank stairs,Brick slab,Brick stairs,Stone brick slab,Stone brick stairs,Sandstone slab,Sandstone stairs,Smooth stone slab,Smooth stone stairs,Marble slab,Marble stairs,Basalt slab,Basalt stairs,Roof tile slab,Roof tile stairs,Plank fence,Birch plank fence,Pine plank fence,Glass pane,Torch,Ladder,Door,Pine door,Sign,Plank fence gate,Birch plank fence gate,Pine plank fence gate,Trapdoor,Pine trapdoor'

/** The numbers of shapes. Those with a direction are followed by the same for the others: +x −x +z −z. Posts, by their arms. */
export const NONE = 0
export const CUBE = 1
export const LIQUID = 2
export const PLANT = 3
export const SLAB = 4
export const UPPER_SLAB = 5
export const STAIRS = 6
export const FENCE = 30
export const PANE = 31
export const TORCH = 32
export const SIGN = 37
export const WALL_SIGN = 41
export const LADDER = 45
export const DOOR = 49
export const OPEN_DOOR = 53
export const GATE = 57
export const OPEN_GATE = 61
export const TRAPDOOR = 65
export const OPEN_TRAPDOOR = 73
export const FENCE_POST = 81
export const PANE_POST = 86

/** The boxes of each shape, in sixteenths of a block: low and high corner. */
// prettier-ignore
export const SHAPE_BOXES: readonly (readonly (readonly number[])[])[] = [
  [],
  [[0,0,0,16,16,16]],
  [],
  [],
  [[0,0,0,16,8,16]],
  [[0,8,0,16,16,16]],
  [[0,0,0,16,8,16],[8,8,0,16,16,16]],
  [[0,0,0,16,8,16],[0,8,0,8,16,16]],
  [[0,0,0,16,8,16],[0,8,8,16,16,16]],
  [[0,0,0,16,8,16],[0,8,0,16,16,8]],
  [[0,0,0,16,8,16],[8,8,8,16,16,16]],
  [[0,0,0,16,8,16],[0,8,0,8,16,8]],
  [[0,0,0,16,8,16],[0,8,8,8,16,16]],
  [[0,0,0,16,8,16],[8,8,0,16,16,8]],
  [[0,0,0,16,8,16],[8,8,0,16,16,16],[0,8,8,8,16,16]],
  [[0,0,0,16,8,16],[0,8,0,8,16,16],[8,8,0,16,16,8]],
  [[0,0,0,16,8,16],[0,8,8,16,16,16],[0,8,0,8,16,8]],
  [[0,0,0,16,8,16],[0,8,0,16,16,8],[8,8,8,16,16,16]],
  [[0,8,0,16,16,16],[8,0,0,16,8,16]],
  [[0,8,0,16,16,16],[0,0,0,8,8,16]],
  [[0,8,0,16,16,16],[0,0,8,16,8,16]],
  [[0,8,0,16,16,16],[0,0,0,16,8,8]],
  [[0,8,0,16,16,16],[8,0,8,16,8,16]],
  [[0,8,0,16,16,16],[0,0,0,8,8,8]],
  [[0,8,0,16,16,16],[0,0,8,8,8,16]],
  [[0,8,0,16,16,16],[8,0,0,16,8,8]],
  [[0,8,0,16,16,16],[8,0,0,16,8,16],[0,0,8,8,8,16]],
  [[0,8,0,16,16,16],[0,0,0,8,8,16],[8,0,0,16,8,8]],
  [[0,8,0,16,16,16],[0,0,8,16,8,16],[0,0,0,8,8,8]],
  [[0,8,0,16,16,16],[0,0,0,16,8,8],[8,0,8,16,8,16]],
  [[0,0,0,16,16,16]],
  [[0,0,0,16,16,16]],
  [[7,0,7,9,10,9]],
  [[14,4,7,16,14,9]],
  [[0,4,7,2,14,9]],
  [[7,4,14,9,14,16]],
  [[7,4,0,9,14,2]],
  [[7,0,7,9,7,9],[7,7,0,9,15,16]],
  [[7,0,7,9,7,9],[7,7,0,9,15,16]],
  [[7,0,7,9,7,9],[0,7,7,16,15,9]],
  [[7,0,7,9,7,9],[0,7,7,16,15,9]],
  [[14,4,0,16,12,16]],
  [[0,4,0,2,12,16]],
  [[0,4,14,16,12,16]],
  [[0,4,0,16,12,2]],
  [[15,0,0,16,16,16]],
  [[0,0,0,1,16,16]],
  [[0,0,15,16,16,16]],
  [[0,0,0,16,16,1]],
  [[0,0,0,3,16,16]],
  [[13,0,0,16,16,16]],
  [[0,0,0,16,16,3]],
  [[0,0,13,16,16,16]],
  [[0,0,0,16,16,3]],
  [[0,0,13,16,16,16]],
  [[13,0,0,16,16,16]],
  [[0,0,0,3,16,16]],
  [[7,5,0,9,16,2],[7,6,2,9,9,14],[7,9,6,9,12,10],[7,12,2,9,15,14],[7,5,14,9,16,16]],
  [[7,5,14,9,16,16],[7,6,2,9,9,14],[7,9,6,9,12,10],[7,12,2,9,15,14],[7,5,0,9,16,2]],
  [[14,5,7,16,16,9],[2,6,7,14,9,9],[6,9,7,10,12,9],[2,12,7,14,15,9],[0,5,7,2,16,9]],
  [[0,5,7,2,16,9],[2,6,7,14,9,9],[6,9,7,10,12,9],[2,12,7,14,15,9],[14,5,7,16,16,9]],
  [[7,5,0,9,16,2],[9,6,0,13,9,2],[9,12,0,13,15,2],[13,6,0,15,15,2],[7,5,14,9,16,16],[9,6,14,13,9,16],[9,12,14,13,15,16],[13,6,14,15,15,16]],
  [[7,5,14,9,16,16],[3,6,14,7,9,16],[3,12,14,7,15,16],[1,6,14,3,15,16],[7,5,0,9,16,2],[3,6,0,7,9,2],[3,12,0,7,15,2],[1,6,0,3,15,2]],
  [[14,5,7,16,16,9],[14,6,9,16,9,13],[14,12,9,16,15,13],[14,6,13,16,15,15],[0,5,7,2,16,9],[0,6,9,2,9,13],[0,12,9,2,15,13],[0,6,13,2,15,15]],
  [[0,5,7,2,16,9],[0,6,3,2,9,7],[0,12,3,2,15,7],[0,6,1,2,15,3],[14,5,7,16,16,9],[14,6,3,16,9,7],[14,12,3,16,15,7],[14,6,1,16,15,3]],
  [[0,0,0,16,3,16]],
  [[0,0,0,16,3,16]],
  [[0,0,0,16,3,16]],
  [[0,0,0,16,3,16]],
  [[0,13,0,16,16,16]],
  [[0,13,0,16,16,16]],
  [[0,13,0,16,16,16]],
  [[0,13,0,16,16,16]],
  [[13,0,0,16,16,16]],
  [[0,0,0,3,16,16]],
  [[0,0,13,16,16,16]],
  [[0,0,0,16,16,3]],
  [[13,0,0,16,16,16]],
  [[0,0,0,3,16,16]],
  [[0,0,13,16,16,16]],
  [[0,0,0,16,16,3]],
  [[6,0,6,10,16,10]],
  [[10,12,7,16,15,9],[10,6,7,16,9,9]],
  [[0,12,7,6,15,9],[0,6,7,6,9,9]],
  [[7,12,10,9,15,16],[7,6,10,9,9,16]],
  [[7,12,0,9,15,6],[7,6,0,9,9,6]],
  [[7,0,7,9,16,9]],
  [[9,0,7,16,16,9]],
  [[0,0,7,7,16,9]],
  [[7,0,9,9,16,16]],
  [[7,0,0,9,16,7]],
]

/**
 * The properties of blocks, in order of their ids, in runs of similar ones: their number, then of the first its shape, flags (1 passable,
 * 2 clear, 4 fixed, 8 leafy, 16 cutout, 32 water, 64 cold), light (glow + 16·dims), group + 16·sound, the layers of its top, side and
 * bottom, and the number of the state. In a run, the layers grow by one; of slabs and all shapes after them, the shape and the number of
 * the state do.
 */
// prettier-ignore
export const RUNS =
  '1,0,7,0,0,0,0,0,0 1,1,0,0,1,1,1,1,0 1,1,0,0,17,2,3,4,0 2,1,0,0,17,4,4,4,0 1,2,35,16,97,6,6,6,0 1,1,0,0,49,7,8,7,0 1,1,26,16,33,9,9,9,0 1,1,64,0,17,10,10,10,0 4,1,0,0,1,11,11,11,0 2,1,0,0,17,15,15,15,0 1,1,4,0,1,17,17,17,0 1,1,0,0,51,18,18,18,0 1,1,0,0,3,19,19,19,0 1,1,18,0,67,20,20,20,0 1,1,0,0,3,21,21,21,0 1,1,0,15,73,22,22,22,0 1,1,98,16,65,23,23,23,0 1,1,64,0,17,10,24,4,0 1,1,0,0,33,25,26,25,0 1,1,0,0,49,27,28,27,0 1,1,26,16,33,29,29,29,0 1,1,0,0,49,30,31,30,0 2,1,26,16,33,32,32,32,0 9,3,19,0,34,34,34,34,0 16,1,0,0,20,71,71,71,0 16,1,0,0,5,87,87,87,0 16,1,34,0,70,103,103,103,0 4,1,0,0,3,43,43,43,0 2,1,0,0,51,47,47,47,0 4,1,0,0,3,49,49,49,0 1,1,0,0,51,18,53,18,0 1,1,0,0,35,54,55,54,0 3,1,0,0,83,56,56,56,0 2,4,2,240,7,1,1,1,0 4,6,2,240,8,1,1,1,0 2,4,2,240,7,19,19,19,0 4,6,2,240,8,19,19,19,0 2,4,2,240,55,18,18,18,0 4,6,2,240,56,18,18,18,0 2,4,2,240,55,47,47,47,0 4,6,2,240,56,47,47,47,0 2,4,2,240,55,48,48,48,0 4,6,2,240,56,48,48,48,0 2,4,2,240,7,21,21,21,0 4,6,2,240,8,21,21,21,0 2,4,2,240,7,43,43,43,0 4,6,2,240,8,43,43,43,0 2,4,2,240,7,46,46,46,0 4,6,2,240,8,46,46,46,0 2,4,2,240,7,45,45,45,0 4,6,2,240,8,45,45,45,0 2,4,2,240,7,49,49,49,0 4,6,2,240,8,49,49,49,0 2,4,2,240,7,50,50,50,0 4,6,2,240,8,50,50,50,0 2,4,2,240,7,52,52,52,0 4,6,2,240,8,52,52,52,0 1,30,2,0,57,18,18,18,0 1,30,2,0,57,47,47,47,0 1,30,2,0,57,48,48,48,0 1,31,18,0,73,20,20,20,0 1,32,3,14,57,59,60,61,0 4,33,3,14,57,59,62,61,1 4,45,19,0,57,63,63,63,0 4,49,18,0,57,64,65,65,0 4,53,19,0,57,64,65,65,4 4,49,18,0,57,66,67,67,0 4,53,19,0,57,66,67,67,4 8,37,3,0,57,68,68,68,0 4,57,2,0,57,18,18,18,0 4,61,3,0,57,18,18,18,4 4,57,2,0,57,47,47,47,0 4,61,3,0,57,47,47,47,4 4,57,2,0,57,48,48,48,0 4,61,3,0,57,48,48,48,4 8,65,18,0,57,69,69,69,0 8,73,19,0,57,69,69,69,8 8,65,18,0,57,70,70,70,0 8,73,19,0,57,70,70,70,8 20,10,2,240,8,1,1,1,163 20,10,2,240,8,19,19,19,177 20,10,2,240,56,18,18,18,191 20,10,2,240,56,47,47,47,205 20,10,2,240,56,48,48,48,219 20,10,2,240,8,21,21,21,233 20,10,2,240,8,43,43,43,247 20,10,2,240,8,46,46,46,261 20,10,2,240,8,45,45,45,275 20,10,2,240,8,49,49,49,289 20,10,2,240,8,50,50,50,303 20,10,2,240,8,52,52,52,317'
