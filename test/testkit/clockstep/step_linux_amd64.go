package clockstep

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	page    = 4096
	patches = 100                  // how often Step tries to stop the process outside the instructions that it replaces
	pause   = 2 * time.Millisecond // until all threads have stopped, or left those instructions
)

// jump is the length of the instruction that replaces the beginning of clock_gettime.
const jump = 5

// The stub is written behind the vDSO's image, in the rest of its last page: the offset in seconds, aligned, and the
// function that replaces clock_gettime. Which clock is in EDI, where to write the time in RSI.
//
//	b8 e4000000    mov  eax, 228         clock_gettime, of the kernel
//	0f 05          syscall
//	85 ff          test edi, edi
//	75 0a          jnz  return           another clock than CLOCK_REALTIME
//	48 8b 15 …     mov  rdx, [offset]
//	48 01 16       add  [rsi], rdx
//	c3     return: ret
var stub = []byte{
	0xb8, 0xe4, 0, 0, 0, 0x0f, 0x05, 0x85, 0xff, 0x75, 0x0a,
	0x48, 0x8b, 0x15, 0xe6, 0xff, 0xff, 0xff, // 26 bytes before the next instruction
	0x48, 0x01, 0x16, 0xc3,
}

// Missing returns why clocks cannot be stepped here; "" if they can.
func Missing() string {
	if os.Geteuid() != 0 {
		return "stepping another process's clock needs root"
	}
	if _, err := find(os.Getpid()); err != nil {
		return err.Error()
	}
	return ""
}

// Step makes the wall clock of a process differ from the machine's by the offset, in whole seconds; 0 makes it right
// again. The process is stopped for some milliseconds when its clock is stepped for the first time.
func Step(pid int, offset time.Duration) error {
	if offset%time.Second != 0 {
		return fmt.Errorf("step the clock of process %d by %v: not whole seconds", pid, offset)
	}
	if err := step(pid, int64(offset/time.Second)); err != nil {
		return fmt.Errorf("step the clock of process %d: %w", pid, err)
	}
	return nil
}

func step(pid int, seconds int64) error {
	v, err := find(pid)
	if err != nil {
		return err
	}
	mem, err := os.OpenFile(fmt.Sprintf("/proc/%d/mem", pid), os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer mem.Close()                                                //nolint:errcheck // nothing is buffered
	offset := binary.LittleEndian.AppendUint64(nil, uint64(seconds)) //nolint:gosec // two's complement
	if _, err := mem.WriteAt(offset, v.offset); err != nil || v.patched {
		return err
	}
	if _, err := mem.WriteAt(stub, v.offset+8); err != nil {
		return err
	}
	resume, err := stop(pid, v.function)
	if err != nil {
		return err
	}
	_, err = mem.WriteAt(v.jump(), v.function)
	return errors.Join(err, resume())
}

// A vdso says where in a process things are.
type vdso struct {
	function int64 // clock_gettime
	offset   int64 // with the stub behind it
	patched  bool
}

// jump returns the instruction that jumps from the function to the stub.
func (v vdso) jump() []byte {
	return binary.LittleEndian.AppendUint32([]byte{0xe9}, uint32(v.offset+8-v.function-jump)) //nolint:gosec // in one mapping
}

func find(pid int) (vdso, error) {
	begin, end, err := mapping(pid)
	if err != nil {
		return vdso{}, err
	}
	mem, err := os.Open(fmt.Sprintf("/proc/%d/mem", pid))
	if err != nil {
		return vdso{}, err
	}
	defer mem.Close() //nolint:errcheck // only read
	image := make([]byte, end-begin)
	if _, err := mem.ReadAt(image, begin); err != nil {
		return vdso{}, fmt.Errorf("read the vDSO: %w", err)
	}
	file, err := elf.NewFile(bytes.NewReader(image))
	if err != nil {
		return vdso{}, fmt.Errorf("read the vDSO: %w", err)
	}
	symbols, err := file.DynamicSymbols()
	if err != nil {
		return vdso{}, fmt.Errorf("read the vDSO: %w", err)
	}
	var v vdso
	for _, s := range symbols {
		if s.Name == "__vdso_clock_gettime" && s.Value < uint64(len(image)-jump) {
			v.function = begin + int64(s.Value) //nolint:gosec // in the image
		}
	}
	if v.function == 0 {
		return vdso{}, errors.New("the vDSO has no clock_gettime")
	}
	// The stub has the same place in each process: at the end of the last page.
	v.offset = end - int64(8+len(stub)+7)/8*8
	rest := image[v.offset-begin:]
	v.patched = bytes.Equal(image[v.function-begin:][:jump], v.jump())
	if !v.patched && len(bytes.Trim(rest, "\x00")) > 0 && !bytes.HasPrefix(rest[8:], stub) {
		return vdso{}, errors.New("the vDSO leaves no room for another clock_gettime")
	}
	return v, nil
}

// mapping returns where the process's vDSO is.
func mapping(pid int) (begin, end int64, err error) {
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		return 0, 0, err
	}
	for line := range strings.Lines(string(maps)) {
		if !strings.HasSuffix(strings.TrimSpace(line), "[vdso]") {
			continue
		}
		if _, err := fmt.Sscanf(line, "%x-%x ", &begin, &end); err != nil || end-begin < page {
			break
		}
		return begin, end, nil
	}
	return 0, 0, errors.New("the process has no vDSO")
}

// stop stops all threads of a process, none of them within the instructions that a jump at that address will replace.
// The function that it returns lets the process run again, unless it was stopped before.
func stop(pid int, at int64) (resume func() error, err error) {
	var threads []string
	if threads, err = filepath.Glob(fmt.Sprintf("/proc/%d/task/*", pid)); err != nil {
		return nil, err
	}
	if len(threads) == 0 {
		return nil, os.ErrProcessDone
	}
	if state(threads[0]) == 'T' {
		return func() error { return nil }, nil
	}
	resume = func() error { return syscall.Kill(pid, syscall.SIGCONT) }
	for range patches {
		if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
			return nil, err
		}
		time.Sleep(pause)
		// Threads that began meanwhile count as well.
		if threads, err = filepath.Glob(fmt.Sprintf("/proc/%d/task/*", pid)); err == nil && allOutside(threads, at) {
			return resume, nil
		}
		if err := errors.Join(err, resume()); err != nil {
			return nil, err
		}
		time.Sleep(pause)
	}
	return nil, errors.New("its threads do not stop outside clock_gettime")
}

func allOutside(threads []string, at int64) bool {
	for _, thread := range threads {
		if state(thread) != 'T' {
			return false
		}
		call, err := os.ReadFile(filepath.Join(thread, "syscall")) // ends with the stack pointer and the address of the next instruction
		if err != nil {
			return false
		}
		words := strings.Fields(string(call))
		pc, err := strconv.ParseInt(strings.TrimPrefix(words[len(words)-1], "0x"), 16, 64)
		if err != nil || at < pc && pc < at+jump {
			return false
		}
	}
	return true
}

// state returns the state of a thread: T if it is stopped.
func state(thread string) byte {
	stat, err := os.ReadFile(filepath.Join(thread, "stat"))
	if err != nil {
		return 0
	}
	after := stat[bytes.LastIndexByte(stat, ')')+1:]
	if len(after) < 2 {
		return 0
	}
	return after[1]
}
