package minecraft

import (
	"bytes"
	"strings"

	"github.com/Tnze/go-mc/nbt"

	"github.com/voxelpopuli/voxeld/blocktable"
)

// What the client is told about the game before it plays. There is one kind of world, called overworld, with one biome.
const (
	dimension = "minecraft:overworld"
	biome     = "minecraft:plains"
)

// damages are all kinds of damage: the client does not start without them, though nobody is ever hurt.
const damages = "arrow bad_respawn_point cactus cramming dragon_breath drown dry_out explosion fall falling_anvil falling_block " +
	"falling_stalactite fireball fireworks fly_into_wall freeze generic generic_kill hot_floor in_fire in_wall indirect_magic lava " +
	"lightning_bolt magic mob_attack mob_attack_no_aggro mob_projectile on_fire out_of_world outside_border player_attack player_explosion " +
	"sonic_boom stalagmite starve sting sweet_berry_bush thorns thrown trident unattributed_fireball wither wither_skull"

// registry is a list of elements of one kind.
type registry[E any] struct {
	Type  string     `nbt:"type"`
	Value []entry[E] `nbt:"value"`
}

type entry[E any] struct {
	Name    string `nbt:"name"`
	ID      int32  `nbt:"id"`
	Element E      `nbt:"element"`
}

func registryOf[E any](kind string, elements ...entry[E]) registry[E] {
	for i := range elements {
		elements[i].ID = int32(i) //nolint:gosec // few
	}
	return registry[E]{Type: kind, Value: elements}
}

type registries struct {
	Dimensions registry[dimensionType] `nbt:"minecraft:dimension_type"`
	Biomes     registry[biomeType]     `nbt:"minecraft:worldgen/biome"`
	Chats      registry[chatType]      `nbt:"minecraft:chat_type"`
	Damages    registry[damageType]    `nbt:"minecraft:damage_type"`
}

type dimensionType struct {
	PiglinSafe    bool    `nbt:"piglin_safe"`
	Natural       bool    `nbt:"natural"`
	AmbientLight  float32 `nbt:"ambient_light"`
	Infiniburn    string  `nbt:"infiniburn"`
	Anchors       bool    `nbt:"respawn_anchor_works"`
	HasSkylight   bool    `nbt:"has_skylight"`
	Beds          bool    `nbt:"bed_works"`
	Effects       string  `nbt:"effects"`
	HasRaids      bool    `nbt:"has_raids"`
	LogicalHeight int32   `nbt:"logical_height"`
	Scale         float64 `nbt:"coordinate_scale"`
	MinY          int32   `nbt:"min_y"`
	Ultrawarm     bool    `nbt:"ultrawarm"`
	HasCeiling    bool    `nbt:"has_ceiling"`
	Height        int32   `nbt:"height"`
	MonsterLight  int32   `nbt:"monster_spawn_light_level"`
	MonsterBlocks int32   `nbt:"monster_spawn_block_light_limit"`
}

type biomeType struct {
	HasPrecipitation bool    `nbt:"has_precipitation"`
	Temperature      float32 `nbt:"temperature"`
	Downfall         float32 `nbt:"downfall"`
	Effects          struct {
		Sky      int32 `nbt:"sky_color"`
		WaterFog int32 `nbt:"water_fog_color"`
		Fog      int32 `nbt:"fog_color"`
		Water    int32 `nbt:"water_color"`
	} `nbt:"effects"`
}

type chatType struct {
	Chat      decoration `nbt:"chat"`
	Narration decoration `nbt:"narration"`
}

type decoration struct {
	Key        string   `nbt:"translation_key"`
	Parameters []string `nbt:"parameters"`
}

type damageType struct {
	Message    string  `nbt:"message_id"`
	Scaling    string  `nbt:"scaling"`
	Exhaustion float32 `nbt:"exhaustion"`
}

// registriesFor returns the registries of a world of a height in blocks, in NBT as it is sent: the root has no name.
func registriesFor(height int32) []byte {
	plains := biomeType{HasPrecipitation: false, Temperature: .8, Downfall: .4}
	plains.Effects.Sky, plains.Effects.WaterFog, plains.Effects.Fog, plains.Effects.Water = 0x78a7ff, 0x050533, 0xc0d8ff, 0x3f76e4
	said := decoration{Key: "chat.type.text", Parameters: []string{"sender", "content"}}
	var hurt []entry[damageType]
	for name := range strings.FieldsSeq(damages) {
		hurt = append(hurt, entry[damageType]{Name: "minecraft:" + name, Element: damageType{Message: name, Scaling: "never"}})
	}
	return marshal(registries{
		Dimensions: registryOf("minecraft:dimension_type", entry[dimensionType]{Name: dimension, Element: dimensionType{
			Natural: true, Infiniburn: "#minecraft:infiniburn_overworld", HasSkylight: true, Beds: true, Effects: dimension,
			LogicalHeight: height, Scale: 1, Height: height,
		}}),
		Biomes:  registryOf("minecraft:worldgen/biome", entry[biomeType]{Name: biome, Element: plains}),
		Chats:   registryOf("minecraft:chat_type", entry[chatType]{Name: "minecraft:chat", Element: chatType{Chat: said, Narration: said}}),
		Damages: registryOf("minecraft:damage_type", hurt...),
	})
}

// marshal encodes a constant, or what holds only numbers.
func marshal(v any) []byte {
	var b bytes.Buffer
	e := nbt.NewEncoder(&b)
	e.NetworkFormat(true)
	if err := e.Encode(v, ""); err != nil {
		panic(err)
	}
	return b.Bytes()
}

// configure returns the packets that tell the client about a world of a height in blocks.
func configure(height int32) []packet {
	tags := begin(packetConfigTags).varint(2).
		tags("minecraft:fluid", blocktable.MinecraftTag{Name: "minecraft:water", Blocks: []uint16{2, 1}}). // flowing water, and water
		tags("minecraft:block", blocktable.MinecraftTags()...)
	return []packet{
		append(begin(packetConfigRegistry), registriesFor(height)...),
		begin(packetConfigFeatures).varint(1).text("minecraft:vanilla"),
		tags,
		begin(packetConfigFinished),
	}
}

// tags appends the tags of a registry.
func (p packet) tags(registry string, all ...blocktable.MinecraftTag) packet {
	p = p.text(registry).varint(len(all))
	for _, tag := range all {
		p = p.text(tag.Name).varint(len(tag.Blocks))
		for _, number := range tag.Blocks {
			p = p.varint(int(number))
		}
	}
	return p
}
