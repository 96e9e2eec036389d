package luanti

import (
	"bytes"
	"crypto/sha1" //nolint:gosec // what the protocol names media by
	"embed"
	"encoding/base64"
	"strings"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/gameserver/games"
)

// tileFiles are the textures of blocks, which the browser's client draws (web/src/render/tiles.ts): "npm --prefix web
// run test" compares them, and writes them anew with TILES=write.
//
//go:embed tiles/*.png
var tileFiles embed.FS

// definitions are what every client is sent before it is in the game.
type definitions struct {
	nodes, items, announcement packet
	media                      map[string][]byte // by name
}

// define makes the definitions.
func define() (definitions, error) {
	d := definitions{media: map[string][]byte{}}
	entries, err := tileFiles.ReadDir("tiles")
	if err != nil {
		return d, err
	}
	for _, e := range entries {
		if d.media[prefix+e.Name()], err = tileFiles.ReadFile("tiles/" + e.Name()); err != nil {
			return d, err
		}
	}
	for name, front := range map[string]bool{frontImage: true, backImage: false} {
		if d.media[name], err = drawPlayer(front); err != nil {
			return d, err
		}
	}
	announce := begin(toAnnounceMedia).u16(uint16(len(d.media))) //nolint:gosec // some hundred
	for name, data := range d.media {
		sum := sha1.Sum(data) //nolint:gosec // what the protocol names media by
		announce = announce.text(name).text(base64.StdEncoding.EncodeToString(sum[:]))
	}
	d.announcement = announce.text("") // no other place to fetch them from
	if d.nodes, err = defineNodes(); err != nil {
		return d, err
	}
	d.items, err = defineItems()
	return d, err
}

// TileNames returns the names of the files of the textures, such as stone.png.
func TileNames() (names []string) {
	entries, _ := tileFiles.ReadDir("tiles") // it is embedded
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// tilesOf returns the textures of a block: top, side and bottom.
func tilesOf(b chunk.Block) [3]string {
	names := b.Tiles()
	for i, n := range names {
		names[i] = prefix + n + ".png"
		if b == chunk.Water {
			names[i] += "^[opacity:180"
		}
	}
	return names
}

// Ways to draw a node.
const (
	drawCube   = 0
	drawLiquid = 2
	drawGlass  = 4
	drawLeaves = 6
	drawPlant  = 9
	drawBoxes  = 12
)

// Ways to use the alpha of a texture.
const (
	alphaBlend  = 0
	alphaClip   = 1
	alphaOpaque = 2
)

// drawing returns how a block is drawn, and what becomes of its alpha.
func drawing(b chunk.Block) (draw, alpha byte) {
	switch {
	case b == chunk.Water:
		return drawLiquid, alphaBlend
	case b.Translucent():
		return drawGlass, alphaBlend
	case b.Plant():
		return drawPlant, alphaClip
	case b.Leafy():
		return drawLeaves, alphaClip
	case b.Shaped():
		return drawBoxes, alphaClip
	case !b.Opaque():
		return drawGlass, alphaClip
	}
	return drawCube, alphaOpaque
}

// nodeName returns the name of a node, and of its item.
func nodeName(b chunk.Block) string { return "voxeld:" + b.Name() }

// defineNodes returns the packet with the nodes.
func defineNodes() (packet, error) {
	var defs packet
	count := uint16(0)
	for b := chunk.Air + 1; b.Known(); b++ {
		names := tilesOf(b)
		if b.Door() {
			upper := [3]string{names[0], names[0], names[0]}
			defs = defs.u16(nodeOf(b, b)).bytes(defineNode(b, nodeName(b)+"_upper", upper))
			count++
			names[0] = names[1]
		}
		defs = defs.u16(nodeOf(b, chunk.Air)).bytes(defineNode(b, nodeName(b), names))
		count++
	}
	return deflated(toNodeDefinitions, packet(nil).u8(1).u16(count).blob(defs))
}

// deflated returns a packet whose content is deflated.
func deflated(command uint16, content packet) (packet, error) {
	var out bytes.Buffer
	if err := deflate(&out, content); err != nil {
		return nil, err
	}
	return begin(command).blob(out.Bytes()), nil
}

// white is the colour that changes nothing.
const white = 0xff

// defineNode returns the definition of a block's node, with its name and the textures of its top, side and bottom.
func defineNode(b chunk.Block, name string, names [3]string) packet {
	draw, alpha := drawing(b)
	glow := min(b.Glow(), games.FullLight-1)  // the most that the client knows
	p := packet(nil).u8(13).text(name)        // version
	p = p.u16(1).text("dig_immediate").s16(3) // groups: it is dug at once
	p = p.u8(1, 0, draw).text("").f32(1)      // light, no rotation
	p = p.u8(6)
	for _, name := range []string{names[0], names[2], names[1], names[1], names[1], names[1]} {
		p = p.tile(name, draw)
	}
	for range 6 { // overlays
		p = p.tile("", draw)
	}
	p = p.u8(6)
	for range 6 { // of liquids: their top and sides
		if draw == drawLiquid {
			p = p.tile(names[0], draw)
		} else {
			p = p.tile("", draw)
		}
	}
	p = p.u8(white, white, white, white).text("").u8(0).u8(0).joined(b)
	if b == chunk.Water {
		p = p.u8(120, 30, 70, 140) // the colour of what is seen from within
	} else {
		p = p.u8(0, 0, 0, 0)
	}
	p = p.u8(0).flag(!b.Opaque(), !b.Shades()).u8(glow)                          // level, light passes, sunlight passes
	p = p.flag(false, b.Solid(), b != chunk.Water, b.Breakable(), b.Climbable()) // ground, stops bodies, can be pointed at, dug, climbed
	p = p.flag(b.Plant() || b == chunk.Water, b.Opens()).u32(0)                  // replaced by what is put there, reacts to clicks, damage
	if b == chunk.Water {
		p = p.u8(2).text(nodeName(b)).text(nodeName(b)).u8(1)
	} else {
		p = p.u8(0).text("").text("").u8(0)
	}
	p = p.flag(false).u8(0, 0).flag(false) // renewed, range, drowning, floods
	p = p.boxes(b)
	for range 3 { // sounds: steps, digging, dug
		p = p.sound()
	}
	return p.flag(false, false).text("air").u8(0).u8(alpha) // old rotations, what digging leaves, level
}

// tile appends a texture of a node. It may be repeated both ways; the backs of faces are drawn only of plants.
func (p packet) tile(name string, draw byte) packet {
	flags := uint16(2 | 4)
	if draw != drawPlant {
		flags |= 1
	}
	return p.u8(6).text(name).u8(0).u16(flags)
}

// sound appends a sound, which is none.
func (p packet) sound() packet { return p.text("").f32(1, 1, 0) }

// Types of items.
const (
	itemNone = 0
	itemNode = 1
)

// defineItems returns the packet with the items: the hand, and a block of each kind, but not its states.
func defineItems() (packet, error) {
	p := packet(nil).u8(0)
	items := []packet{defineItem(itemNone, "", "Hand", "", false)}
	for b := chunk.Air + 1; b.Known(); b++ {
		if b.Base() != b {
			continue
		}
		words := strings.ReplaceAll(b.Name(), "_", " ")
		shown := nodeName(b)
		if hasStates(b) {
			shown = "" // which one it is, the server says
		}
		items = append(items, defineItem(itemNode, nodeName(b), strings.ToUpper(words[:1])+words[1:], shown, b == chunk.Water))
	}
	p = p.u16(uint16(len(items))) //nolint:gosec // some hundred
	for _, i := range items {
		p = p.bytes(i)
	}
	return deflated(toItemDefinitions, p.u16(0)) // no aliases
}

// reach is how far the client points, in blocks: a little less than the gateway's, which measures from elsewhere.
const reach = 7.5

// defineItem returns the definition of an item. The client shows the node placed at once, if there is one. With some
// items liquids can be pointed at, and dug.
func defineItem(kind byte, name, words, placed string, liquids bool) packet {
	p := packet(nil).u8(6, kind).text(name).text(words).text("").text("").f32(1, 1, 1) // version; no images; scale
	var tool packet
	if kind == itemNone { // the hand has to be a tool, which is good for nothing else than what is dug at once
		tool = tool.u8(5).f32(1).s16(0).u32(0).u32(0).u16(0)
	}
	p = p.s16(1).flag(false, liquids).bytes(tool).u16(0).text(placed) // stack, use, liquids, groups
	p = p.sound().sound().f32(reach).text("").u8(white, white, white, white)
	return p.text("").text("").text("").u8(0) // overlays, short text, rotation
}
