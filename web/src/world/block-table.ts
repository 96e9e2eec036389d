// The server's table of blocks (package chunk). It is written by
//   go test ./chunk -run TestBlockTable -update
// and not by hand.

/** The names of the block textures, by layer. */
// prettier-ignore
export const TILES = ['unknown','stone','grass_top','grass_side','dirt','sand','water','log_top','log_side','leaves','snow','coal_ore','iron_ore','gold_ore','diamond_ore','gravel','clay','bedrock','planks','cobble','glass','brick','lamp','ice','snowy_grass_side','cactus_top','cactus_side','birch_log_top','birch_log_side','birch_leaves','pine_log_top','pine_log_side','pine_leaves','dry_leaves','tall_grass','dry_grass','fern','poppy','dandelion','cornflower','daisy','dead_bush','reeds','white_wool','light_grey_wool','grey_wool','black_wool','brown_wool','red_wool','orange_wool','yellow_wool','lime_wool','green_wool','cyan_wool','light_blue_wool','blue_wool','purple_wool','magenta_wool','pink_wool','white_concrete','light_grey_concrete','grey_concrete','black_concrete','brown_concrete','red_concrete','orange_concrete','yellow_concrete','lime_concrete','green_concrete','cyan_concrete','light_blue_concrete','blue_concrete','purple_concrete','magenta_concrete','pink_concrete','white_glass','light_grey_glass','grey_glass','black_glass','brown_glass','red_glass','orange_glass','yellow_glass','lime_glass','green_glass','cyan_glass','light_blue_glass','blue_glass','purple_glass','magenta_glass','pink_glass','stone_bricks','mossy_cobble','smooth_stone','sandstone','birch_planks','pine_planks','marble','basalt','terracotta','roof_tiles','bookshelf','straw_top','straw','iron_block','gold_block','diamond_block','torch_top','torch','torch_end','wall_torch','ladder','door_top','door','pine_door_top','pine_door'] as const

/** The groups of the inventory. */
// prettier-ignore
export const GROUPS: readonly string[] = ['','Nature','Plants','Building','Wool','Concrete','Glass','Slabs','Stairs','Fittings']

/** The name of each block; empty for one that is a state of a block before it. */
// prettier-ignore
export const NAMES: readonly string[] = ['Air','Stone','Grass','Dirt','Sand','Water','Log','Leaves','Snow','Coal ore','Iron ore','Gold ore','Diamond ore','Gravel','Clay','Bedrock','Planks','Cobble','Glass','Brick','Lamp','Ice','Snowy grass','Cactus','Birch log','Birch leaves','Pine log','Pine leaves','Dry leaves','Tall grass','Dry grass','Fern','Poppy','Dandelion','Cornflower','Daisy','Dead bush','Reeds','White wool','Light grey wool','Grey wool','Black wool','Brown wool','Red wool','Orange wool','Yellow wool','Lime wool','Green wool','Cyan wool','Light blue wool','Blue wool','Purple wool','Magenta wool','Pink wool','White concrete','Light grey concrete','Grey concrete','Black concrete','Brown concrete','Red concrete','Orange concrete','Yellow concrete','Lime concrete','Green concrete','Cyan concrete','Light blue concrete','Blue concrete','Purple concrete','Magenta concrete','Pink concrete','White glass','Light grey glass','Grey glass','Black glass','Brown glass','Red glass','Orange glass','Yellow glass','Lime glass','Green glass','Cyan glass','Light blue glass','Blue glass','Purple glass','Magenta glass','Pink glass','Stone bricks','Mossy cobble','Smooth stone','Sandstone','Birch planks','Pine planks','Marble','Basalt','Terracotta','Roof tiles','Bookshelf','Straw','Iron block','Gold block','Diamond block','Stone slab','','Stone stairs','','','','Cobble slab','','Cobble stairs','','','','Plank slab','','Plank stairs','','','','Birch plank slab','','Birch plank stairs','','','','Pine plank slab','','Pine plank stairs','','','','Brick slab','','Brick stairs','','','','Stone brick slab','','Stone brick stairs','','','','Sandstone slab','','Sandstone stairs','','','','Smooth stone slab','','Smooth stone stairs','','','','Marble slab','','Marble stairs','','','','Basalt slab','','Basalt stairs','','','','Roof tile slab','','Roof tile stairs','','','','Plank fence','Birch plank fence','Pine plank fence','Glass pane','Torch','','','','','Ladder','','','','Door','','','','','','','','Pine door','','','','','','','',]

/** The numbers of shapes. Those with a direction are followed by the same for the others: +x −x +z −z. Posts, by their arms. */
export const NONE = 0
export const CUBE = 1
export const LIQUID = 2
export const PLANT = 3
export const SLAB = 4
export const UPPER_SLAB = 5
export const STAIRS = 6
export const FENCE = 10
export const PANE = 11
export const TORCH = 12
export const LADDER = 17
export const DOOR = 21
export const OPEN_DOOR = 25
export const FENCE_POST = 29
export const PANE_POST = 34

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
  [[0,0,0,16,16,16]],
  [[0,0,0,16,16,16]],
  [[7,0,7,9,10,9]],
  [[14,4,7,16,14,9]],
  [[0,4,7,2,14,9]],
  [[7,4,14,9,14,16]],
  [[7,4,0,9,14,2]],
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
 * The properties of each block: shape, flags (1 passable, 2 clear, 4 fixed, 8 leafy, 16 cutout, 32 water), light (glow + 16·dims), group,
 * the layers of its top, side and bottom, and the number of the state.
 */
// prettier-ignore
export const ROWS: readonly (readonly number[])[] = [
  [0,7,0,0,0,0,0,0], // 0 air
  [1,0,0,1,1,1,1,0], // 1 stone
  [1,0,0,1,2,3,4,0], // 2 grass
  [1,0,0,1,4,4,4,0], // 3 dirt
  [1,0,0,1,5,5,5,0], // 4 sand
  [2,35,16,1,6,6,6,0], // 5 water
  [1,0,0,1,7,8,7,0], // 6 log
  [1,26,16,1,9,9,9,0], // 7 leaves
  [1,0,0,1,10,10,10,0], // 8 snow
  [1,0,0,1,11,11,11,0], // 9 coal_ore
  [1,0,0,1,12,12,12,0], // 10 iron_ore
  [1,0,0,1,13,13,13,0], // 11 gold_ore
  [1,0,0,1,14,14,14,0], // 12 diamond_ore
  [1,0,0,1,15,15,15,0], // 13 gravel
  [1,0,0,1,16,16,16,0], // 14 clay
  [1,4,0,1,17,17,17,0], // 15 bedrock
  [1,0,0,3,18,18,18,0], // 16 planks
  [1,0,0,3,19,19,19,0], // 17 cobble
  [1,18,0,3,20,20,20,0], // 18 glass
  [1,0,0,3,21,21,21,0], // 19 brick
  [1,0,15,9,22,22,22,0], // 20 lamp
  [1,34,16,1,23,23,23,0], // 21 ice
  [1,0,0,1,10,24,4,0], // 22 snowy_grass
  [1,0,0,1,25,26,25,0], // 23 cactus
  [1,0,0,1,27,28,27,0], // 24 birch_log
  [1,26,16,1,29,29,29,0], // 25 birch_leaves
  [1,0,0,1,30,31,30,0], // 26 pine_log
  [1,26,16,1,32,32,32,0], // 27 pine_leaves
  [1,26,16,1,33,33,33,0], // 28 dry_leaves
  [3,19,0,2,34,34,34,0], // 29 tall_grass
  [3,19,0,2,35,35,35,0], // 30 dry_grass
  [3,19,0,2,36,36,36,0], // 31 fern
  [3,19,0,2,37,37,37,0], // 32 poppy
  [3,19,0,2,38,38,38,0], // 33 dandelion
  [3,19,0,2,39,39,39,0], // 34 cornflower
  [3,19,0,2,40,40,40,0], // 35 daisy
  [3,19,0,2,41,41,41,0], // 36 dead_bush
  [3,19,0,2,42,42,42,0], // 37 reeds
  [1,0,0,4,43,43,43,0], // 38 white_wool
  [1,0,0,4,44,44,44,0], // 39 light_grey_wool
  [1,0,0,4,45,45,45,0], // 40 grey_wool
  [1,0,0,4,46,46,46,0], // 41 black_wool
  [1,0,0,4,47,47,47,0], // 42 brown_wool
  [1,0,0,4,48,48,48,0], // 43 red_wool
  [1,0,0,4,49,49,49,0], // 44 orange_wool
  [1,0,0,4,50,50,50,0], // 45 yellow_wool
  [1,0,0,4,51,51,51,0], // 46 lime_wool
  [1,0,0,4,52,52,52,0], // 47 green_wool
  [1,0,0,4,53,53,53,0], // 48 cyan_wool
  [1,0,0,4,54,54,54,0], // 49 light_blue_wool
  [1,0,0,4,55,55,55,0], // 50 blue_wool
  [1,0,0,4,56,56,56,0], // 51 purple_wool
  [1,0,0,4,57,57,57,0], // 52 magenta_wool
  [1,0,0,4,58,58,58,0], // 53 pink_wool
  [1,0,0,5,59,59,59,0], // 54 white_concrete
  [1,0,0,5,60,60,60,0], // 55 light_grey_concrete
  [1,0,0,5,61,61,61,0], // 56 grey_concrete
  [1,0,0,5,62,62,62,0], // 57 black_concrete
  [1,0,0,5,63,63,63,0], // 58 brown_concrete
  [1,0,0,5,64,64,64,0], // 59 red_concrete
  [1,0,0,5,65,65,65,0], // 60 orange_concrete
  [1,0,0,5,66,66,66,0], // 61 yellow_concrete
  [1,0,0,5,67,67,67,0], // 62 lime_concrete
  [1,0,0,5,68,68,68,0], // 63 green_concrete
  [1,0,0,5,69,69,69,0], // 64 cyan_concrete
  [1,0,0,5,70,70,70,0], // 65 light_blue_concrete
  [1,0,0,5,71,71,71,0], // 66 blue_concrete
  [1,0,0,5,72,72,72,0], // 67 purple_concrete
  [1,0,0,5,73,73,73,0], // 68 magenta_concrete
  [1,0,0,5,74,74,74,0], // 69 pink_concrete
  [1,34,0,6,75,75,75,0], // 70 white_glass
  [1,34,0,6,76,76,76,0], // 71 light_grey_glass
  [1,34,0,6,77,77,77,0], // 72 grey_glass
  [1,34,0,6,78,78,78,0], // 73 black_glass
  [1,34,0,6,79,79,79,0], // 74 brown_glass
  [1,34,0,6,80,80,80,0], // 75 red_glass
  [1,34,0,6,81,81,81,0], // 76 orange_glass
  [1,34,0,6,82,82,82,0], // 77 yellow_glass
  [1,34,0,6,83,83,83,0], // 78 lime_glass
  [1,34,0,6,84,84,84,0], // 79 green_glass
  [1,34,0,6,85,85,85,0], // 80 cyan_glass
  [1,34,0,6,86,86,86,0], // 81 light_blue_glass
  [1,34,0,6,87,87,87,0], // 82 blue_glass
  [1,34,0,6,88,88,88,0], // 83 purple_glass
  [1,34,0,6,89,89,89,0], // 84 magenta_glass
  [1,34,0,6,90,90,90,0], // 85 pink_glass
  [1,0,0,3,91,91,91,0], // 86 stone_bricks
  [1,0,0,3,92,92,92,0], // 87 mossy_cobble
  [1,0,0,3,93,93,93,0], // 88 smooth_stone
  [1,0,0,3,94,94,94,0], // 89 sandstone
  [1,0,0,3,95,95,95,0], // 90 birch_planks
  [1,0,0,3,96,96,96,0], // 91 pine_planks
  [1,0,0,3,97,97,97,0], // 92 marble
  [1,0,0,3,98,98,98,0], // 93 basalt
  [1,0,0,3,99,99,99,0], // 94 terracotta
  [1,0,0,3,100,100,100,0], // 95 roof_tiles
  [1,0,0,3,18,101,18,0], // 96 bookshelf
  [1,0,0,3,102,103,102,0], // 97 straw
  [1,0,0,3,104,104,104,0], // 98 iron_block
  [1,0,0,3,105,105,105,0], // 99 gold_block
  [1,0,0,3,106,106,106,0], // 100 diamond_block
  [4,2,240,7,1,1,1,0], // 101 stone_slab
  [5,2,240,7,1,1,1,1], // 102 stone_slab_upper
  [6,2,240,8,1,1,1,0], // 103 stone_stairs
  [7,2,240,8,1,1,1,1], // 104 stone_stairs_west
  [8,2,240,8,1,1,1,2], // 105 stone_stairs_south
  [9,2,240,8,1,1,1,3], // 106 stone_stairs_north
  [4,2,240,7,19,19,19,0], // 107 cobble_slab
  [5,2,240,7,19,19,19,1], // 108 cobble_slab_upper
  [6,2,240,8,19,19,19,0], // 109 cobble_stairs
  [7,2,240,8,19,19,19,1], // 110 cobble_stairs_west
  [8,2,240,8,19,19,19,2], // 111 cobble_stairs_south
  [9,2,240,8,19,19,19,3], // 112 cobble_stairs_north
  [4,2,240,7,18,18,18,0], // 113 plank_slab
  [5,2,240,7,18,18,18,1], // 114 plank_slab_upper
  [6,2,240,8,18,18,18,0], // 115 plank_stairs
  [7,2,240,8,18,18,18,1], // 116 plank_stairs_west
  [8,2,240,8,18,18,18,2], // 117 plank_stairs_south
  [9,2,240,8,18,18,18,3], // 118 plank_stairs_north
  [4,2,240,7,95,95,95,0], // 119 birch_plank_slab
  [5,2,240,7,95,95,95,1], // 120 birch_plank_slab_upper
  [6,2,240,8,95,95,95,0], // 121 birch_plank_stairs
  [7,2,240,8,95,95,95,1], // 122 birch_plank_stairs_west
  [8,2,240,8,95,95,95,2], // 123 birch_plank_stairs_south
  [9,2,240,8,95,95,95,3], // 124 birch_plank_stairs_north
  [4,2,240,7,96,96,96,0], // 125 pine_plank_slab
  [5,2,240,7,96,96,96,1], // 126 pine_plank_slab_upper
  [6,2,240,8,96,96,96,0], // 127 pine_plank_stairs
  [7,2,240,8,96,96,96,1], // 128 pine_plank_stairs_west
  [8,2,240,8,96,96,96,2], // 129 pine_plank_stairs_south
  [9,2,240,8,96,96,96,3], // 130 pine_plank_stairs_north
  [4,2,240,7,21,21,21,0], // 131 brick_slab
  [5,2,240,7,21,21,21,1], // 132 brick_slab_upper
  [6,2,240,8,21,21,21,0], // 133 brick_stairs
  [7,2,240,8,21,21,21,1], // 134 brick_stairs_west
  [8,2,240,8,21,21,21,2], // 135 brick_stairs_south
  [9,2,240,8,21,21,21,3], // 136 brick_stairs_north
  [4,2,240,7,91,91,91,0], // 137 stone_brick_slab
  [5,2,240,7,91,91,91,1], // 138 stone_brick_slab_upper
  [6,2,240,8,91,91,91,0], // 139 stone_brick_stairs
  [7,2,240,8,91,91,91,1], // 140 stone_brick_stairs_west
  [8,2,240,8,91,91,91,2], // 141 stone_brick_stairs_south
  [9,2,240,8,91,91,91,3], // 142 stone_brick_stairs_north
  [4,2,240,7,94,94,94,0], // 143 sandstone_slab
  [5,2,240,7,94,94,94,1], // 144 sandstone_slab_upper
  [6,2,240,8,94,94,94,0], // 145 sandstone_stairs
  [7,2,240,8,94,94,94,1], // 146 sandstone_stairs_west
  [8,2,240,8,94,94,94,2], // 147 sandstone_stairs_south
  [9,2,240,8,94,94,94,3], // 148 sandstone_stairs_north
  [4,2,240,7,93,93,93,0], // 149 smooth_stone_slab
  [5,2,240,7,93,93,93,1], // 150 smooth_stone_slab_upper
  [6,2,240,8,93,93,93,0], // 151 smooth_stone_stairs
  [7,2,240,8,93,93,93,1], // 152 smooth_stone_stairs_west
  [8,2,240,8,93,93,93,2], // 153 smooth_stone_stairs_south
  [9,2,240,8,93,93,93,3], // 154 smooth_stone_stairs_north
  [4,2,240,7,97,97,97,0], // 155 marble_slab
  [5,2,240,7,97,97,97,1], // 156 marble_slab_upper
  [6,2,240,8,97,97,97,0], // 157 marble_stairs
  [7,2,240,8,97,97,97,1], // 158 marble_stairs_west
  [8,2,240,8,97,97,97,2], // 159 marble_stairs_south
  [9,2,240,8,97,97,97,3], // 160 marble_stairs_north
  [4,2,240,7,98,98,98,0], // 161 basalt_slab
  [5,2,240,7,98,98,98,1], // 162 basalt_slab_upper
  [6,2,240,8,98,98,98,0], // 163 basalt_stairs
  [7,2,240,8,98,98,98,1], // 164 basalt_stairs_west
  [8,2,240,8,98,98,98,2], // 165 basalt_stairs_south
  [9,2,240,8,98,98,98,3], // 166 basalt_stairs_north
  [4,2,240,7,100,100,100,0], // 167 roof_tile_slab
  [5,2,240,7,100,100,100,1], // 168 roof_tile_slab_upper
  [6,2,240,8,100,100,100,0], // 169 roof_tile_stairs
  [7,2,240,8,100,100,100,1], // 170 roof_tile_stairs_west
  [8,2,240,8,100,100,100,2], // 171 roof_tile_stairs_south
  [9,2,240,8,100,100,100,3], // 172 roof_tile_stairs_north
  [10,2,0,9,18,18,18,0], // 173 plank_fence
  [10,2,0,9,95,95,95,0], // 174 birch_plank_fence
  [10,2,0,9,96,96,96,0], // 175 pine_plank_fence
  [11,18,0,9,20,20,20,0], // 176 glass_pane
  [12,3,14,9,107,108,109,0], // 177 torch
  [13,3,14,9,107,110,109,1], // 178 torch_on_the_east
  [14,3,14,9,107,110,109,2], // 179 torch_on_the_west
  [15,3,14,9,107,110,109,3], // 180 torch_on_the_south
  [16,3,14,9,107,110,109,4], // 181 torch_on_the_north
  [17,19,0,9,111,111,111,0], // 182 ladder
  [18,19,0,9,111,111,111,1], // 183 ladder_west
  [19,19,0,9,111,111,111,2], // 184 ladder_south
  [20,19,0,9,111,111,111,3], // 185 ladder_north
  [21,18,0,9,112,113,113,0], // 186 door
  [22,18,0,9,112,113,113,1], // 187 door_west
  [23,18,0,9,112,113,113,2], // 188 door_south
  [24,18,0,9,112,113,113,3], // 189 door_north
  [25,19,0,9,112,113,113,4], // 190 door_open_east
  [26,19,0,9,112,113,113,5], // 191 door_open_west
  [27,19,0,9,112,113,113,6], // 192 door_open_south
  [28,19,0,9,112,113,113,7], // 193 door_open_north
  [21,18,0,9,114,115,115,0], // 194 pine_door
  [22,18,0,9,114,115,115,1], // 195 pine_door_west
  [23,18,0,9,114,115,115,2], // 196 pine_door_south
  [24,18,0,9,114,115,115,3], // 197 pine_door_north
  [25,19,0,9,114,115,115,4], // 198 pine_door_open_east
  [26,19,0,9,114,115,115,5], // 199 pine_door_open_west
  [27,19,0,9,114,115,115,6], // 200 pine_door_open_south
  [28,19,0,9,114,115,115,7], // 201 pine_door_open_north
]
