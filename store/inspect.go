package store

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"io"
	"os"
)

// bbolt does not check the pages of its file. A truncated file or a wild page number ends the process with a bus error,
// a cycle of branch pages with a stack overflow, a used page in the list of free ones with silent loss, a huge size in
// an entry with an allocation of all memory. So this package reads the file's structure itself, with plain reads and
// bounds, before bbolt maps it. The speed is the disk's. In a file larger than wholeUpTo only the branch pages are
// read, about a hundredth of it. Check reads all.
//
// The layout is bbolt's own (its internal/common), see its documentation. Numbers are in the byte order of the
// machine that writes.

const (
	branchFlag   = 0x01
	leafFlag     = 0x02
	metaFlag     = 0x04
	freelistFlag = 0x10
	bucketFlag   = 0x01 // of a leaf element: its value is a table

	headerSize  = 16 // of a page: id u64, flags u16, count u16, overflow u32
	branchSize  = 16 // of an element: pos u32, key size u32, page u64
	leafSize    = 16 // of an element: flags u32, pos u32, key size u32, value size u32
	bucketSize  = 16 // of a table's head: root page u64, sequence u64
	metaSize    = 64 // see readMeta
	maxPageSize = 16 << 20
	maxRun      = 256 << 20 // bytes of one page with its overflow pages

	wholeUpTo = 256 << 20 // bytes of pages in use

	boltMagic   = 0xED0CDAED
	boltVersion = 2
	noFreelist  = ^uint64(0)
)

var native = binary.NativeEndian

// meta is the content of a meta page: the state of the file after one transaction.
type meta struct {
	pageSize int64
	root     uint64 // page of the root table
	freelist uint64 // page of the list of free pages
	end      uint64 // all pages have lower numbers
	txid     uint64
}

// readMeta reads a meta page's content; ok is false if it is invalid or torn.
func readMeta(file io.ReaderAt, at int64) (m meta, ok bool) {
	var b [headerSize + metaSize]byte
	if _, err := file.ReadAt(b[:], at); err != nil {
		return meta{}, false
	}
	f := b[headerSize:] // magic, version, page size, flags u32; root, sequence, freelist, end, txid, checksum u64
	sum := fnv.New64a()
	sum.Write(f[:56])
	if native.Uint32(f) != boltMagic || native.Uint32(f[4:]) != boltVersion || native.Uint64(f[56:]) != sum.Sum64() {
		return meta{}, false
	}
	m = meta{
		pageSize: int64(native.Uint32(f[8:])),
		root:     native.Uint64(f[16:]),
		freelist: native.Uint64(f[32:]),
		end:      native.Uint64(f[40:]),
		txid:     native.Uint64(f[48:]),
	}
	valid := m.pageSize >= 1024 && m.pageSize <= maxPageSize && m.pageSize&(m.pageSize-1) == 0
	return m, valid && (at == 0 || at == m.pageSize)
}

// statedPageSize returns the page size in the first meta page, which is invalid. 0: it cannot be read.
func statedPageSize(file io.ReaderAt) int64 {
	var size [4]byte
	if _, err := file.ReadAt(size[:], headerSize+8); err != nil {
		return 0
	}
	return int64(native.Uint32(size[:]))
}

// readMetas returns the newer one of the two meta pages. stale means that the other one is invalid.
func readMetas(file io.ReaderAt) (newest meta, stale bool, err error) {
	first, ok := readMeta(file, 0)
	if !ok {
		// Other pages have bytes that others chose. So the second one is looked for nowhere else than where it must be:
		// behind a first one of the size that this says, or of the machine's, if even that is damaged.
		for _, size := range [...]int64{statedPageSize(file), int64(os.Getpagesize())} {
			if second, ok := readMeta(file, size); ok {
				return second, true, nil
			}
		}
		return meta{}, true, damaged("it has no valid meta page")
	}
	second, ok := readMeta(file, first.pageSize)
	switch {
	case !ok || second.pageSize != first.pageSize:
		return first, true, nil
	case second.txid > first.txid:
		return second, false, nil
	}
	return first, false, nil
}

// inspection walks the tables of one state of the file.
type inspection struct {
	file io.ReaderAt
	size int64 // bytes
	meta meta
	// entry, if set, is called with every entry of every table. Leaf pages are then read, too, and every page must be
	// either in use or free.
	entry func(table string, key, sealed []byte) error

	claimed []uint64 // a bit per page: set once the page is claimed
}

func (in *inspection) run() error {
	if most := uint64(in.size / in.meta.pageSize); in.meta.end > most {
		return damaged("it is cut short: %d of at least %d pages are there", most, in.meta.end)
	}
	in.claimed = make([]uint64, in.meta.end/64+1)
	if err := in.tree("", in.meta.root, bounds{}); err != nil {
		return err
	}
	if in.meta.freelist == noFreelist {
		return damaged("it has no list of free pages")
	}
	if err := in.free(); err != nil {
		return err
	}
	if in.entry == nil {
		return nil
	}
	for id := uint64(2); id < in.meta.end; id++ {
		if in.claimed[id/64]&(1<<(id%64)) == 0 {
			return damaged("page %d is neither in use nor free", id)
		}
	}
	return nil
}

// claim marks n pages from id on as used; each page may be claimed once.
func (in *inspection) claim(id, n uint64) error {
	if id < 2 || id >= in.meta.end || n > in.meta.end-id {
		return damaged("page %d of %d: out of bounds", id, in.meta.end)
	}
	for ; n > 0; n-- {
		word, bit := &in.claimed[id/64], uint64(1)<<(id%64)
		if *word&bit != 0 {
			return damaged("page %d is used twice", id)
		}
		*word |= bit
		id++
	}
	return nil
}

// header reads the first bytes of page id.
func (in *inspection) header(id uint64) (flags, count uint16, overflow uint32, err error) {
	if id < 2 || id >= in.meta.end {
		return 0, 0, 0, damaged("page %d of %d: out of bounds", id, in.meta.end)
	}
	var b [headerSize]byte
	if _, err := in.file.ReadAt(b[:], int64(id)*in.meta.pageSize); err != nil {
		return 0, 0, 0, fmt.Errorf("read page %d: %w", id, err)
	}
	if got := native.Uint64(b[:]); got != id {
		return 0, 0, 0, damaged("page %d says it is page %d", id, got)
	}
	return native.Uint16(b[8:]), native.Uint16(b[10:]), native.Uint32(b[12:]), nil
}

// page claims page id and its overflow pages, and reads them, header included.
func (in *inspection) page(id uint64) (page []byte, flags, count uint16, err error) {
	flags, count, overflow, err := in.header(id)
	if err != nil {
		return nil, 0, 0, err
	}
	if err := in.claim(id, uint64(overflow)+1); err != nil {
		return nil, 0, 0, err
	}
	n := (int64(overflow) + 1) * in.meta.pageSize
	if n > maxRun {
		return nil, 0, 0, damaged("page %d is %d bytes long", id, n)
	}
	page = make([]byte, n)
	if _, err := in.file.ReadAt(page, int64(id)*in.meta.pageSize); err != nil {
		return nil, 0, 0, fmt.Errorf("read page %d: %w", id, err)
	}
	return page, flags, count, nil
}

// bounds limit the keys in a subtree: first ≤ key < after. nil means no bound.
type bounds struct{ first, after []byte }

// tree walks the tree of a table ("": the root, whose entries are the tables).
func (in *inspection) tree(table string, id uint64, keys bounds) error {
	page, flags, count, err := in.page(id)
	if err != nil {
		return err
	}
	switch flags {
	case leafFlag:
		if count == 0 && table != "" {
			return damaged("page %d has no entries", id) // bbolt drops an empty page, or keeps it in the table's head
		}
		if _, err := in.leaf(table, page, int(count), keys); err != nil {
			return fmt.Errorf("page %d: %w", id, err)
		}
		return nil
	case branchFlag:
		children, err := branch(page, int(count), keys)
		if err != nil {
			return fmt.Errorf("page %d: %w", id, err)
		}
		return in.descend(table, children)
	}
	return damaged("page %d of a table has the flags %#x", id, flags)
}

type child struct {
	id   uint64
	keys bounds
}

func branch(page []byte, count int, keys bounds) ([]child, error) {
	if count == 0 || headerSize+count*branchSize > len(page) {
		return nil, damaged("a branch with %d children", count)
	}
	children := make([]child, count)
	data := packed{page, headerSize + count*branchSize}
	for i := range children {
		at := headerSize + i*branchSize
		key, err := data.read(at+int(native.Uint32(page[at:])), native.Uint32(page[at+4:]))
		if err != nil {
			return nil, err
		}
		if err := keys.next(key); err != nil {
			return nil, err
		}
		if i > 0 {
			children[i-1].keys.after = key
		}
		children[i] = child{native.Uint64(page[at+8:]), bounds{first: key}}
	}
	children[count-1].keys.after = keys.after
	return children, nil
}

// descend walks the children of a branch. All leaves of a table are equally deep. So if the first child is a leaf, the
// others are read only if the entries are wanted.
func (in *inspection) descend(table string, children []child) error {
	if in.entry == nil && table != "" {
		flags, _, _, err := in.header(children[0].id)
		if err != nil {
			return err
		}
		if flags == leafFlag {
			for _, c := range children {
				if err := in.claim(c.id, 1); err != nil {
					return err
				}
			}
			return nil
		}
	}
	for _, c := range children {
		if err := in.tree(table, c.id, c.keys); err != nil {
			return err
		}
	}
	return nil
}

// leaf visits the entries of a leaf and returns where they end in the page.
func (in *inspection) leaf(table string, page []byte, count int, keys bounds) (end int, err error) {
	if headerSize+count*leafSize > len(page) {
		return 0, damaged("a leaf with %d entries", count)
	}
	if table != "" && in.entry == nil {
		return 0, nil
	}
	data := packed{page, headerSize + count*leafSize}
	for i := range count {
		at := headerSize + i*leafSize
		key, err := data.read(at+int(native.Uint32(page[at+4:])), native.Uint32(page[at+8:]))
		if err != nil {
			return 0, err
		}
		value, err := data.read(data.at, native.Uint32(page[at+12:]))
		if err != nil {
			return 0, err
		}
		if err := keys.next(key); err != nil {
			return 0, err
		}
		isTable := native.Uint32(page[at:])&bucketFlag != 0
		switch {
		case isTable != (table == ""):
			return 0, damaged("table %q has the entry %q, which does not belong there", table, key)
		case isTable:
			err = in.table(string(key), value)
		default:
			err = in.entry(table, key, value)
		}
		if err != nil {
			return 0, err
		}
	}
	return data.at, nil
}

// table walks a table. head contains the page number of its tree, or 0 followed by its only leaf.
func (in *inspection) table(name string, head []byte) error {
	if name == "" || len(head) < bucketSize {
		return damaged("table %q has no head", name)
	}
	var err error
	if root := native.Uint64(head); root != 0 {
		err = in.tree(name, root, bounds{})
	} else {
		err = in.inline(name, head[bucketSize:])
	}
	if err != nil {
		return fmt.Errorf("table %q: %w", name, err)
	}
	return nil
}

// inline visits the only leaf of a small table, which fills the rest of the table's head.
func (in *inspection) inline(table string, page []byte) error {
	if len(page) < headerSize || native.Uint16(page[8:]) != leafFlag {
		return damaged("it has no leaf")
	}
	count := int(native.Uint16(page[10:]))
	end, err := in.leaf(table, page, count, bounds{})
	if err != nil {
		return err
	}
	if in.entry != nil && end != len(page) {
		return damaged("its %d entries end at %d of %d bytes", count, end, len(page))
	}
	return nil
}

// next checks that key lies within the bounds, and raises the lower bound above it.
func (b *bounds) next(key []byte) error {
	if len(key) == 0 || len(key) > MaxKey {
		return damaged("a key of %d bytes", len(key))
	}
	if bytes.Compare(key, b.first) < 0 || b.after != nil && bytes.Compare(key, b.after) >= 0 {
		return damaged("the key %x is out of order", key)
	}
	b.first = append(key[:len(key):len(key)], 0) // the smallest key that is greater
	return nil
}

// free claims the pages of the list of free pages: id u64 each. A count of 65,535 means that the first entry is the
// true count.
func (in *inspection) free() error {
	page, flags, n, err := in.page(in.meta.freelist)
	if err != nil {
		return fmt.Errorf("list of free pages: %w", err)
	}
	if flags != freelistFlag {
		return damaged("the list of free pages has the flags %#x", flags)
	}
	ids, count := page[headerSize:], uint64(n)
	if n == 0xFFFF {
		count, ids = native.Uint64(ids), ids[8:]
	}
	if count > uint64(len(ids)/8) {
		return damaged("a list of %d free pages in %d bytes", count, len(ids))
	}
	for i := range count {
		if err := in.claim(native.Uint64(ids[8*i:]), 1); err != nil {
			return fmt.Errorf("list of free pages: %w", err)
		}
	}
	return nil
}

// packed reads keys and values from a page. They follow the elements without gaps, so that a wrong number of elements
// is detected, too.
type packed struct {
	page []byte
	at   int // where the next key begins
}

func (p *packed) read(from int, n uint32) ([]byte, error) {
	if from != p.at || uint64(n) > uint64(len(p.page)-p.at) {
		return nil, damaged("an entry of %d bytes at %d: expected at %d of %d", n, from, p.at, len(p.page))
	}
	p.at += int(n)
	return p.page[from:p.at:p.at], nil
}
