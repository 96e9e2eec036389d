package store

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/voxelpopuli/voxeld/internal/kv"
)

// A transaction of bbolt costs two fdatasyncs and, for every small row, a page. So a commit goes to the journal first:
// records one after the other, one fdatasync each. Records that are in the journal and not yet in the tables are also
// held in memory (overlay.go), and a checkpoint moves them into the tables in one transaction (writer.go). After a
// crash they are read back.
//
// There are two journal files: commits go to one while a checkpoint moves the contents of the other into the tables.
// doc.go describes them.
//
// Rows have bytes that others chose, and a file is reused over its older contents. So each generation of a file has a
// random salt, which is in each of its records: nothing else in the file counts. The tables have the salt before it is
// used, and the transaction that makes a file's records superfluous replaces it (docs/adr/0086).
const (
	journalHead = 24       // bytes before a record's writes: checksum u32, length u32, salt u64, number u64, big-endian
	journalMax  = 16 << 20 // bytes of one file
	journalStep = 64 << 10 // first growth of a file; later it doubles
	align       = 8        // records begin at multiples of so many bytes
)

// journal is the pair of files. Open owns it until Run does.
type journal struct {
	files [2]*os.File // nil if it could not be opened yet
	paths [2]string
	sizes [2]int64  // size in bytes, written or zero
	at    int       // index of the current file
	off   int64     // where the next record begins in it
	last  uint64    // number of the newest record; the next one has the next number
	salts [2]uint64 // of each file's generation; that of the current file is in the tables
}

// newSalt returns a salt that nobody can predict. 0 means that there is none.
func newSalt() uint64 {
	var salt [8]byte
	rand.Read(salt[:]) // it never fails
	return max(1, binary.BigEndian.Uint64(salt[:]))
}

func newSalts() [2]uint64 { return [2]uint64{newSalt(), newSalt()} }

// journalPaths names the files beside the tables' file: voxeld.db has voxeld.journal-0 and -1.
func journalPaths(path string) (paths [2]string) {
	base := strings.TrimSuffix(path, filepath.Ext(path))
	for i := range paths {
		paths[i] = fmt.Sprintf("%s.journal-%d", base, i)
	}
	return paths
}

// record is a decoded record.
type record struct {
	number uint64
	writes []kv.Write
}

// encodeRecord returns the bytes of a record with the requests' writes, and the writes with keys and values that point
// into these bytes, which the store owns. setHead fills in the head.
func encodeRecord(requests []*request) (encoded []byte, writes []kv.Write) {
	size, n := journalHead, 0
	for _, r := range requests {
		n += len(r.writes)
		for _, w := range r.writes {
			size += 1 + len(w.Table) + 4 + len(w.Key) + 4 + len(w.Value)
		}
	}
	encoded, writes = make([]byte, journalHead, (size+align-1)/align*align), make([]kv.Write, 0, n)
	for _, r := range requests {
		for _, w := range r.writes {
			encoded = append(append(encoded, byte(len(w.Table))), w.Table...)
			encoded = append(binary.BigEndian.AppendUint32(encoded, uint32(len(w.Key))), w.Key...)
			own := kv.Write{Table: w.Table, Key: encoded[len(encoded)-len(w.Key) : len(encoded) : len(encoded)]}
			if w.Value == nil {
				encoded = binary.BigEndian.AppendUint32(encoded, deletion)
			} else {
				encoded = append(binary.BigEndian.AppendUint32(encoded, uint32(len(w.Value))), w.Value...)
				own.Value = encoded[len(encoded)-len(w.Value) : len(encoded) : len(encoded)]
			}
			writes = append(writes, own)
		}
	}
	return encoded, writes
}

// deletion in the place of a value's length means that there is no value.
const deletion = 1<<32 - 1

// room reports whether a record of the given size in bytes fits into the current file.
func (j *journal) room(n int) bool { return j.off+padded(n) <= journalMax }

func padded(n int) int64 { return (int64(n) + align - 1) / align * align }

// setHead fills in the head of an encoded record.
func setHead(encoded []byte, salt, number uint64) {
	binary.BigEndian.PutUint32(encoded[4:], uint32(len(encoded)-journalHead))
	binary.BigEndian.PutUint64(encoded[8:], salt)
	binary.BigEndian.PutUint64(encoded[16:], number)
	binary.BigEndian.PutUint32(encoded, crc32.Checksum(encoded[4:], castagnoli))
}

// append makes a record durable. ErrFull: nothing was written, and the caller may retry. After any other error the
// state of the disk is unknown.
func (j *journal) append(encoded []byte) (err error) {
	if err := j.grow(j.off + padded(len(encoded))); err != nil {
		return translate(err)
	}
	setHead(encoded, j.salts[j.at], j.last+1)
	if _, err := j.files[j.at].WriteAt(encoded, j.off); err != nil {
		return err
	}
	if err := datasync(j.files[j.at]); err != nil {
		return err
	}
	j.last++
	j.off += padded(len(encoded))
	return nil
}

// open opens a file, unless it is open.
func (j *journal) open(i int) error {
	if j.files[i] != nil {
		return nil
	}
	file, err := os.OpenFile(j.paths[i], os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	if err := syncDir(filepath.Dir(j.paths[i])); err != nil {
		return errors.Join(err, file.Close())
	}
	info, err := file.Stat()
	if err != nil {
		return errors.Join(err, file.Close())
	}
	j.files[i], j.sizes[i] = file, info.Size()
	return nil
}

// openBoth opens both files before they are needed: a process that has no descriptors left later goes on writing. A
// commit reports what fails here, such as a full disk.
func (j *journal) openBoth() {
	for i := range j.files {
		j.open(i) //nolint:errcheck // grow tries again
	}
}

// grow extends the current file to at least the given size in bytes. It writes the new space, so that a record written
// over it changes only data, and its sync needs no second write for the file's size.
func (j *journal) grow(need int64) error {
	if err := j.open(j.at); err != nil {
		return err
	}
	for j.sizes[j.at] < need {
		step := min(max(journalStep, j.sizes[j.at], need-j.sizes[j.at]), max(journalMax, need)-j.sizes[j.at])
		if _, err := j.files[j.at].WriteAt(make([]byte, step), j.sizes[j.at]); err != nil {
			return err
		}
		j.sizes[j.at] += step
	}
	return nil
}

// switchFile switches to the other file, whose records are all in the tables. The file that was current has no
// generation to write to until the tables have its records and its new salt.
func (j *journal) switchFile() {
	j.salts[j.at] = newSalt()
	j.at, j.off = 1-j.at, 0
}

// remove deletes the files, whose records are all in the tables.
func (j *journal) remove() error {
	var all []error
	for i, file := range j.files {
		if file != nil {
			all = append(all, file.Close())
		}
		if err := os.Remove(j.paths[i]); err != nil && !errors.Is(err, fs.ErrNotExist) {
			all = append(all, err)
		}
		j.files[i] = nil
	}
	return errors.Join(all...)
}

// close keeps the files for the next Open.
func (j *journal) close() error {
	var all []error
	for _, file := range j.files {
		if file != nil {
			all = append(all, file.Close())
		}
	}
	return errors.Join(all...)
}

// mark is the row of the meta table from which the next start reads the journal.
type mark struct {
	number uint64    // of the last record that the tables have
	salts  [2]uint64 // of each file; never 0
}

func (m mark) encode() []byte {
	row := binary.BigEndian.AppendUint64(make([]byte, 0, 24), m.number)
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(row, m.salts[0]), m.salts[1])
}

func decodeMark(row []byte) (m mark, err error) {
	if len(row) != 24 {
		return mark{}, damaged("the journal's row has %d bytes", len(row))
	}
	m.number = binary.BigEndian.Uint64(row)
	m.salts = [2]uint64{binary.BigEndian.Uint64(row[8:]), binary.BigEndian.Uint64(row[16:])}
	if m.salts[0] == 0 || m.salts[1] == 0 {
		return mark{}, damaged("the journal's row has no salts")
	}
	return m, nil
}

// readJournal returns the records after the mark's, which are already in the tables, in order.
func readJournal(paths [2]string, m mark) ([]record, error) {
	var files [2][]byte
	for i, path := range paths {
		var err error
		if files[i], err = os.ReadFile(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("read journal: %w", err)
		}
	}
	return decodeJournal(files, m)
}

// decodeJournal is readJournal on the contents of the files.
func decodeJournal(files [2][]byte, m mark) ([]record, error) {
	var runs [2][]record
	for i, data := range files {
		var err error
		if runs[i], err = decodeFile(data, m.salts[i]); err != nil {
			return nil, fmt.Errorf("journal-%d: %w", i, err)
		}
	}
	if len(runs[0]) > 0 && len(runs[1]) > 0 && runs[1][0].number < runs[0][0].number {
		runs[0], runs[1] = runs[1], runs[0]
	}
	var all []record
	for _, r := range append(runs[0], runs[1]...) {
		if r.number <= m.number {
			continue
		}
		if r.number != m.number+uint64(len(all))+1 {
			return nil, damaged("the journal goes on with record %d behind %d", r.number, m.number+uint64(len(all)))
		}
		all = append(all, r)
	}
	return all, nil
}

// decodeFile returns the records of the generation with this salt, which is not 0. They begin with the file, and end
// where a crash tore the write of the last one, which was not acknowledged. A record of this generation behind it means
// damage.
func decodeFile(data []byte, salt uint64) (run []record, err error) {
	at, next := 0, uint64(0)
	for {
		number, body, ok := recordAt(data, at, salt)
		if !ok {
			break
		}
		if len(run) > 0 && number != next {
			return nil, damaged("record %d stands in the place of record %d", number, next)
		}
		writes, err := decodeWrites(body)
		if err != nil {
			return nil, fmt.Errorf("record %d: %w", number, err)
		}
		run, next = append(run, record{number, writes}), number+1
		at += int(padded(journalHead + len(body)))
	}
	// Each record is written after the one before it was acknowledged. So the head of a later one is enough.
	for later := at + align; later+journalHead <= len(data); later += align {
		if binary.BigEndian.Uint64(data[later+8:]) == salt {
			return nil, damaged("the record at byte %d cannot be read, but there is another one at byte %d", at, later)
		}
	}
	return run, nil
}

// recordAt reads the record of this generation at an offset, if there is a complete one.
func recordAt(data []byte, at int, salt uint64) (number uint64, body []byte, ok bool) {
	if at+journalHead > len(data) {
		return 0, nil, false
	}
	head := data[at : at+journalHead]
	n := int64(binary.BigEndian.Uint32(head[4:]))
	number = binary.BigEndian.Uint64(head[16:])
	if binary.BigEndian.Uint64(head[8:]) != salt || number == 0 || n > int64(len(data)-at-journalHead) {
		return 0, nil, false
	}
	end := at + journalHead + int(n)
	if crc32.Checksum(data[at+4:end], castagnoli) != binary.BigEndian.Uint32(head) {
		return 0, nil, false
	}
	return number, data[at+journalHead : end], true
}

// decodeWrites decodes a record's writes, which point into data.
func decodeWrites(data []byte) (writes []kv.Write, err error) {
	take := func(n int64) []byte {
		if n > int64(len(data)) {
			err = io.ErrUnexpectedEOF
			return make([]byte, 4)
		}
		taken := data[:n:n]
		data = data[n:]
		return taken
	}
	for len(data) > 0 && err == nil {
		w := kv.Write{Table: string(take(int64(take(1)[0])))}
		w.Key = take(int64(binary.BigEndian.Uint32(take(4))))
		if n := binary.BigEndian.Uint32(take(4)); n != deletion && err == nil {
			w.Value = take(int64(n))
		}
		if err == nil {
			err = check(w)
		}
		writes = append(writes, w)
	}
	if err != nil {
		return nil, damaged("a write in it: %v", err)
	}
	return writes, nil
}

// findJournal returns the path of a journal beside the tables' file, "" if there is none.
func findJournal(path string) (string, error) {
	for _, journal := range journalPaths(path) {
		if _, err := os.Stat(journal); err == nil {
			return journal, nil
		} else if !errors.Is(err, fs.ErrNotExist) {
			return "", fmt.Errorf("look for a journal: %w", err)
		}
	}
	return "", nil
}

// syncDir makes a rename in the directory durable.
func syncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
