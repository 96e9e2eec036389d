package chunk

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// spec encodes a column as the package's documentation specifies, without optimisation.
func spec(blocks []Block) []byte {
	out := []byte{1, byte(len(blocks) / SectionBlocks)}
	for section := range slices.Chunk(blocks, SectionBlocks) {
		var palette []Block
		for _, b := range section {
			if !slices.Contains(palette, b) {
				palette = append(palette, b)
			}
		}
		bits := 0
		for _, bits = range []int{0, 1, 2, 4, 8, 16} {
			if len(palette) <= 1<<bits && (bits < 16) {
				break
			}
		}
		out = append(out, byte(bits))
		if bits < 16 {
			out = binary.LittleEndian.AppendUint16(out, uint16(len(palette)))
			for _, b := range palette {
				out = binary.LittleEndian.AppendUint16(out, uint16(b))
			}
		}
		packed := make([]byte, SectionBlocks*bits/8)
		for i, b := range section {
			v := slices.Index(palette, b)
			switch bits {
			case 0:
			case 16:
				binary.LittleEndian.PutUint16(packed[2*i:], uint16(b))
			default:
				packed[i*bits/8] |= byte(v << (i * bits % 8))
			}
		}
		out = append(out, packed...)
	}
	return out
}

func column(kinds ...int) []Block {
	var blocks []Block
	for _, n := range kinds {
		for i := range SectionBlocks {
			blocks = append(blocks, Block((i+i/7)%n*3)) // ids 0, 3, 6, …
		}
	}
	return blocks
}

func TestCodecIsAsDocumented(t *testing.T) {
	for _, kinds := range [][]int{{1}, {2}, {3}, {4}, {5}, {16}, {17}, {256}, {257}, {300}, {1, 4, 1, 40}} {
		blocks := column(kinds...)
		c, err := FromBlocks(blocks)
		if err != nil {
			t.Fatal(err)
		}
		got, err := c.MarshalBinary()
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, spec(blocks)) {
			t.Errorf("column of sections with %v kinds of blocks is encoded otherwise", kinds)
		}
		if after, err := c.AppendBinary([]byte("x")); err != nil || !bytes.Equal(after, append([]byte("x"), got...)) {
			t.Errorf("AppendBinary does not append: %v", err)
		}
	}
}

func TestCodecGolden(t *testing.T) {
	c := air(2)
	if b, err := c.MarshalBinary(); err != nil || hex.EncodeToString(b) != "0102"+"0001000000"+"0001000000" {
		t.Errorf("two sections of air: %x, %v", b, err)
	}
	c.Set(IndexOf(2, 32, 0), Grass)
	b, err := c.MarshalBinary()
	if want := "0102" + "0001000000" + "01020000000200" + "04" + strings.Repeat("00", 4095); err != nil || hex.EncodeToString(b) != want {
		t.Errorf("grass at 2,32,0: %x…, %v", b[:min(len(b), 20)], err)
	}
	hash := c.Hash()
	if want := "5c0b1daff19a5a168f6d643789df1334b71e1b42a0e2dfb4210bbd353eff605b"; hex.EncodeToString(hash[:]) != want {
		t.Errorf("hash %x, want %s", hash, want)
	}
}

func TestDecodeRefuses(t *testing.T) {
	zeros := strings.Repeat("00", 4096)
	for _, test := range []struct{ name, hex, err string }{
		{"nothing", "", "ends too early"},
		{"no sections", "0100", "0 sections, want 1 to 32"},
		{"half a header", "01", "ends too early"},
		{"version 2", "02010001000000", "version 2, want 1"},
		{"33 sections", "0121" + strings.Repeat("0001000000", 33), "33 sections, want 1 to 32"},
		{"a section missing", "01020001000000", "ends too early"},
		{"a byte too many", "0101000100000000", "1 bytes too many"},
		{"3 bits", "010103", "indices of 3 bits"},
		{"an empty palette", "0101000000", "palette of 0, want 1 to 256"},
		{"a uniform section of two", "0101000200" + "00000100", "palette of 2 for a uniform section"},
		{"half a palette", "01010101", "ends too early"},
		{"palette cut short", "01010102000000", "ends too early"},
		{"palette of 257", "0101080101" + strings.Repeat("0000", 257), "palette of 257, want 1 to 256"},
		{"indices missing", "01010102000000010001" + zeros[:8000], "ends too early"},
		{"unused entries", "01010102000000" + "0100" + zeros, "1 different indices into a palette of 2"},
		{"one entry with indices", "0101010100" + "0000" + zeros, "palette of 1 for indices of 1 bits"},
		{"wider than needed", "0101020200" + "00000100" + "04" + zeros[2:] + zeros, "palette of 2 for indices of 2 bits"},
		{"a block twice", "0101010200" + "00000000" + "02" + zeros[2:], "block 0 twice in the palette"},
		{"not in order of appearance", "0101010200" + "00000100" + "01" + zeros[2:], "index 1 where at most 0 can stand"},
		{"an index beyond the palette", "0101020300" + "000001000200" + "e4" + zeros[2:] + zeros, "4 different indices into a palette of 3"},
		{"ids where a palette would do", "010110" + strings.Repeat(zeros, 16), "1 kinds of blocks without a palette"},
		{"16 bits, cut short", "010110" + zeros, "ends too early"},
		{"appearance order skips a block", "0101020300" + "000001000200" + "08" + zeros[2:] + zeros, "index 2 where at most 1 can stand"},
	} {
		b, err := hex.DecodeString(test.hex)
		if err != nil {
			t.Fatalf("%s: %v", test.name, err)
		}
		if _, err := Decode(b); err == nil || !strings.HasSuffix(err.Error(), ": "+test.err) {
			t.Errorf("%s: %v, want %s", test.name, err, test.err)
		}
	}
}

func TestDecodeKeepsUnknownBlocks(t *testing.T) {
	c := air(1)
	c.Set(5, 0xfffe)
	if got := roundTrip(t, c).Get(5); got != 0xfffe {
		t.Errorf("block 0xfffe became %d", got)
	}
}

// Short input must not cause large allocations.
func TestDecodeAllocatesLittleForShortInput(t *testing.T) {
	short := append([]byte{1, 32}, bytes.Repeat([]byte{16, 0, 0}, 40)...)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range 100 {
		if _, err := Decode(short); err == nil {
			t.Fatal("accepted")
		}
	}
	runtime.ReadMemStats(&after)
	if perCall := (after.TotalAlloc - before.TotalAlloc) / 100; perCall > 8<<10 {
		t.Errorf("%d bytes allocated for an input of %d", perCall, len(short))
	}
}

// The input is head followed by repeated fill, up to size bytes, so that short inputs cover whole sections.
func FuzzDecode(f *testing.F) {
	f.Add([]byte{1, 2, 0, 1, 0, 7, 0, 0, 1, 0, 9, 0}, []byte{}, uint32(0))
	for bits, kinds := range map[int]int{1: 2, 2: 3, 4: 5, 8: 40, 16: 300} {
		// Blocks that count 0, 1, 2, …, kinds-1, padded to a power of two so that whole bytes repeat.
		head := []byte{1, 1, byte(bits)}
		if bits < 16 {
			head = binary.LittleEndian.AppendUint16(head, uint16(kinds))
			for b := range kinds {
				head = binary.LittleEndian.AppendUint16(head, uint16(b))
			}
		}
		fill := make([]byte, 512*bits/8)
		for i := range 512 {
			if v := min(i, kinds-1); bits == 16 {
				binary.LittleEndian.PutUint16(fill[2*i:], uint16(v))
			} else {
				fill[i*bits/8] |= byte(v << (i * bits % 8))
			}
		}
		size := uint32(SectionBlocks * bits / 8)
		if _, err := Decode(filled(head, fill, size)); err != nil {
			f.Fatalf("seed of %d bits: %v", bits, err)
		}
		f.Add(head, fill, size)
		f.Add(head, fill[:1], size)
	}
	f.Fuzz(func(t *testing.T, head, fill []byte, size uint32) {
		b := filled(head, fill, size)
		c, err := Decode(b)
		if err != nil {
			return
		}
		again, err := c.MarshalBinary()
		if err != nil || !bytes.Equal(again, b) {
			t.Fatalf("accepted %d bytes that are not the encoding (%d bytes, %v)", len(b), len(again), err)
		}
		for i := range c.Sections() {
			at := Index(i * SectionBlocks)
			c.Set(at, c.Get(at)) // makes the section repack itself
		}
		if again, err = c.MarshalBinary(); err != nil || !bytes.Equal(again, b) {
			t.Fatalf("packed anew, the encoding differs (%v)", err)
		}
	})
}

// filled returns head and size bytes of fill repeated, 64 KiB of it at most.
func filled(head, fill []byte, size uint32) []byte {
	b := slices.Clone(head)
	if len(fill) == 0 {
		return b
	}
	size = min(size, 64<<10)
	return append(b, bytes.Repeat(fill, int(size)/len(fill)+1)[:size]...)
}

func BenchmarkMarshalUntouched(b *testing.B) { benchmarkMarshal(b, false) }
func BenchmarkMarshalEdited(b *testing.B)    { benchmarkMarshal(b, true) }

func benchmarkMarshal(b *testing.B, edited bool) {
	c, err := FromBlocks(terrainLike())
	if err != nil {
		b.Fatal(err)
	}
	if edited {
		for s := range c.Sections() {
			c.Set(Index(s*SectionBlocks+9), Brick)
		}
	}
	var buf []byte
	for b.Loop() {
		if buf, err = c.AppendBinary(buf[:0]); err != nil {
			b.Fatal(err)
		}
	}
	b.SetBytes(int64(len(buf)))
}

func BenchmarkDecode(b *testing.B) {
	buf := spec(terrainLike())
	b.SetBytes(int64(len(buf)))
	for b.Loop() {
		if _, err := Decode(buf); err != nil {
			b.Fatal(err)
		}
	}
}
