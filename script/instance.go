package script

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
	"golang.org/x/sys/unix"

	"github.com/voxelpopuli/voxeld/script/meter"
)

// slice is how many steps a script takes until it returns to Go for a moment. Native code without calls into Go cannot be
// interrupted, and the garbage collector waits for it.
const slice = 20_000

// Instance runs a Program's function.
type Instance struct {
	program *Program
	module  api.Module
	memory  api.Memory
	calls   map[string]api.Function // of the engine, by name
	steps   api.MutableGlobal       // that are left of the slice
	stack   api.MutableGlobal
	left    int64 // steps that are left behind the slice
	refused bool  // the script needed more memory than it may have
}

// errSlice ends a call that has used up its steps.
var errSlice = errors.New("no steps are left")

// Instance returns a new instance, which Close ends.
func (p *Program) Instance() (*Instance, error) { return p.instantiate() }

// instantiate returns an instance with the engine's own memory, after it has run the start functions.
func (p *Program) instantiate(start ...string) (*Instance, error) {
	i := &Instance{program: p}
	if err := i.open(start...); err != nil {
		return nil, err
	}
	return i, nil
}

func (i *Instance) open(start ...string) (err error) {
	memory, err := unix.Mmap(-1, 0, MaxMemory, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return fmt.Errorf("allocate memory for a script: %w", err)
	}
	taken := false
	ctx := experimental.WithMemoryAllocator(i.context(), experimental.MemoryAllocatorFunc(func(_, _ uint64) experimental.LinearMemory {
		taken = true // it is freed with the module
		return &linear{memory, i}
	}))
	i.left = LoadSteps // for the start functions
	i.module, err = i.program.engine.runtime.InstantiateModule(ctx, i.program.engine.module,
		wazero.NewModuleConfig().WithName("").WithStartFunctions(start...))
	if err != nil && !taken {
		err = errors.Join(err, unix.Munmap(memory))
	}
	if err != nil {
		return fmt.Errorf("instantiate script: %w", err)
	}
	i.memory, i.calls = i.module.Memory(), make(map[string]api.Function)
	i.steps = i.module.ExportedGlobal(meter.Steps).(api.MutableGlobal)
	i.stack = i.module.ExportedGlobal("__stack_pointer").(api.MutableGlobal)
	return nil
}

// Close ends the instance.
func (i *Instance) Close() {
	_ = i.module.Close(context.Background()) // its error is of closing files, and there are none
}

// Call calls the program's function with a text. It returns the function's text, and the steps that it took. Errors of
// the script are ErrSteps, ErrMemory, ErrOutput and Error.
func (i *Instance) Call(in string, steps int64) (out string, used int64, err error) {
	if err := i.reset(); err != nil {
		return "", 0, err
	}
	used, err = i.limited(steps, func() error {
		at, err := i.write(in)
		if err != nil {
			return err
		}
		text, err := i.do("qjs_new_string", at, uint64(len(in)))
		if err != nil {
			return err
		}
		arguments, err := i.do("wasm_malloc", 4)
		if err != nil {
			return err
		}
		i.memory.WriteUint32Le(uint32(arguments), uint32(text))
		this, err := i.do("qjs_get_undefined")
		if err != nil {
			return err
		}
		value, err := i.do("qjs_call", i.program.function, this, 1, arguments)
		if err != nil {
			return err
		}
		if err := i.thrown(value); err != nil {
			return err
		}
		if is, err := i.do("qjs_is_string", value); err != nil || is == 0 {
			return errors.Join(ErrOutput, err)
		}
		out, err = i.read(value)
		return err
	})
	if err != nil {
		return "", used, err
	}
	return out, used, nil
}

// reset makes the memory what it was when the script was loaded.
func (i *Instance) reset() error {
	if i.memory.Size() != uint32(len(i.program.memory)) { // a new instance, or one whose memory grew, which cannot shrink
		i.Close()
		if err := i.open(); err != nil {
			return err
		}
		i.memory.Grow((uint32(len(i.program.memory)) - i.memory.Size()) / wasmPage)
	}
	memory, _ := i.memory.Read(0, i.memory.Size())
	copy(memory[i.program.stack:], i.program.memory[i.program.stack:])
	i.stack.Set(i.program.stack)
	return nil
}

// limited calls f, in which the script takes so many steps at most, and returns how many it took.
func (i *Instance) limited(steps int64, f func() error) (used int64, err error) {
	i.refused, i.left = false, steps
	i.refill()
	err = f()
	used = steps - i.left - int64(int32(i.steps.Get()))
	switch {
	case i.refused:
		err = ErrMemory
	case errors.Is(err, errSlice):
		err = ErrSteps
	}
	return used, err
}

// refill takes the next slice of the steps that are left.
func (i *Instance) refill() {
	next := min(slice, i.left)
	i.left -= next
	i.steps.Set(uint64(next))
}

type instanceKey struct{}

func (i *Instance) context() context.Context {
	return context.WithValue(context.Background(), instanceKey{}, i)
}

// interrupt is called when a slice is used up.
func interrupt(ctx context.Context, m api.Module) int32 {
	i := ctx.Value(instanceKey{}).(*Instance)
	i.steps = m.ExportedGlobal(meter.Steps).(api.MutableGlobal)
	i.left += int64(int32(i.steps.Get())) // below zero: what was used beyond the slice
	if i.left <= 0 {
		i.steps.Set(0)
		panic(errSlice)
	}
	i.refill()
	return 0
}

// do calls a function of the engine.
func (i *Instance) do(name string, arguments ...uint64) (uint64, error) {
	f := i.calls[name]
	if f == nil {
		f = i.module.ExportedFunction(name)
		i.calls[name] = f
	}
	results, err := f.Call(i.context(), arguments...)
	if err != nil || len(results) == 0 {
		return 0, err
	}
	return results[0], nil
}

// write copies a text into the memory, with a zero behind it, and returns where.
func (i *Instance) write(text string) (uint64, error) {
	at, err := i.do("wasm_malloc", uint64(len(text)+1))
	if err != nil {
		return 0, err
	}
	if at == 0 || !i.memory.WriteString(uint32(at), text+"\x00") {
		return 0, ErrMemory
	}
	return at, nil
}

// read returns a value as a text.
func (i *Instance) read(value uint64) (string, error) {
	length, err := i.do("wasm_malloc", 4)
	if err != nil {
		return "", err
	}
	at, err := i.do("qjs_get_string_len", value, length)
	if err != nil {
		return "", err
	}
	n, _ := i.memory.ReadUint32Le(uint32(length))
	if at == 0 || n > MaxText {
		return "", ErrOutput
	}
	text, _ := i.memory.Read(uint32(at), n)
	return string(text), nil
}

// maxErrorText is how many bytes of an exception are kept.
const maxErrorText = 300

// thrown returns the exception if the value says that there is one: what it is, and where it was thrown.
func (i *Instance) thrown(value uint64) error {
	is, err := i.do("qjs_is_exception", value)
	if err != nil || is == 0 {
		return err
	}
	exception, err := i.do("qjs_get_exception")
	if err != nil {
		return err
	}
	text, err := i.read(exception)
	if errors.Is(err, ErrOutput) {
		text, err = "an exception without a text", nil
	}
	if err != nil {
		return err
	}
	text = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) { // operators read it in a terminal
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text[:min(len(text), maxErrorText)], ""))
	if where := i.place(exception); where != "" {
		text += " (" + where + ")"
	}
	return Error{text}
}

// place returns where an exception was thrown, such as main.js:3:7; "" if it does not say.
func (i *Instance) place(exception uint64) string {
	name, err := i.write("stack")
	if err != nil {
		return ""
	}
	stack, err := i.do("qjs_get_prop_string", exception, name)
	if err != nil {
		return ""
	}
	text, err := i.read(stack)
	if err != nil {
		return ""
	}
	return position.FindString(text)
}

var position = regexp.MustCompile(`[\w.-]+:\d+:\d+`)

const wasmPage = 64 << 10

// linear is the memory of an instance. What is not used of it takes none of the machine's.
type linear struct {
	bytes    []byte
	instance *Instance
}

// Reallocate implements experimental.LinearMemory.
func (l *linear) Reallocate(size uint64) []byte {
	if size > MaxMemory {
		l.instance.refused = true
		return nil
	}
	return l.bytes[:size:MaxMemory]
}

// Free implements experimental.LinearMemory.
func (l *linear) Free() {
	if err := unix.Munmap(l.bytes); err != nil {
		panic(fmt.Errorf("free a script's memory: %w", err))
	}
}
