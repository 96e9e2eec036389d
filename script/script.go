// Package script runs scripts of strangers: JavaScript, in QuickJS, which is compiled to WebAssembly, which wazero runs.
//
// A script has no file, socket, clock, thread or randomness of its own. It has 8 MB of memory, and each call has a number
// of steps (package meter); both are hard limits. Nothing of a call is left for the next one. A call does not hold up
// the garbage collector for more than 20,000 steps, about 0.1 ms.
//
// An Engine and a Program may be used from any goroutine, an Instance from one at a time. Only this package imports
// wazero.
package script

import (
	"bytes"
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/voxelpopuli/voxeld/script/meter"
)

// Bounds of a script.
const (
	MaxMemory   = 8 << 20   // bytes of an instance
	MaxText     = 64 << 10  // bytes of what a call is passed, and returns
	LoadSteps   = 3_000_000 // of Load
	maxStack    = 64 << 10  // bytes of JavaScript's stack
	engineBytes = "c0bd8f296e18cf074969f6401b9ecb72609a1323818ec2b9bf7a8f8d740d1363"
)

// Errors of scripts that exceed their bounds, and of a build without the engine.
var (
	ErrSteps  = errors.New("the script has used up its steps")
	ErrMemory = errors.New("the script needs more than 8 MB of memory")
	ErrOutput = errors.New("the script returns no text, or more than 64 KiB of it")
	// ErrNoEngine is returned if voxeld was built without `make`.
	ErrNoEngine = errors.New("this voxeld was built without the engine for scripts: build it with make")
)

// Error is an exception that a script throws.
type Error struct{ Text string }

func (e Error) Error() string { return e.Text }

// engine has quickjs.wasm of the npm package quickjs-wasi, which make copies there.
//
//go:embed all:engine
var engine embed.FS

// Engine compiles scripts. It is compiled once, which takes about half a second.
type Engine struct {
	runtime wazero.Runtime
	module  wazero.CompiledModule
}

// NewEngine returns an engine, or ErrNoEngine. Close ends it.
func NewEngine() (*Engine, error) {
	module, err := engine.ReadFile("engine/quickjs.wasm")
	if err != nil {
		return nil, ErrNoEngine
	}
	if sum := sha256.Sum256(module); hex.EncodeToString(sum[:]) != engineBytes {
		return nil, fmt.Errorf("%w: script/engine/quickjs.wasm is another version", ErrNoEngine)
	}
	ctx := context.Background()
	e := &Engine{runtime: wazero.NewRuntime(ctx)}
	if err := e.imports(ctx); err != nil {
		return nil, errors.Join(err, e.Close())
	}
	if e.module, err = e.runtime.CompileModule(ctx, meter.Add(module)); err != nil {
		return nil, errors.Join(fmt.Errorf("compile the engine for scripts: %w", err), e.Close())
	}
	return e, nil
}

// Close ends the engine, and all of its instances.
func (e *Engine) Close() error { return e.runtime.Close(context.Background()) }

// imports gives the module the functions that it needs. Only Interrupt is of use to it: time stands still, files are
// refused.
func (e *Engine) imports(ctx context.Context) error {
	const badFile = 8 // WASI's EBADF
	zero := func(uint32, uint32) uint32 { return 0 }
	env := e.runtime.NewHostModuleBuilder("env")
	for name, f := range map[string]any{
		meter.Interrupt:            interrupt,
		"host_call":                func(uint32, uint32, uint32, uint32, uint32) uint32 { return 0 },
		"host_get_timezone_offset": zero,
		"host_module_load":         zero,
		"host_module_normalize":    zero,
		"host_promise_rejection":   func(uint32, uint32, uint32) {},
	} {
		env.NewFunctionBuilder().WithFunc(f).Export(name)
	}
	if _, err := env.Instantiate(ctx); err != nil {
		return fmt.Errorf("define the engine's functions: %w", err)
	}
	wasi := e.runtime.NewHostModuleBuilder("wasi_snapshot_preview1")
	for name, f := range map[string]any{
		"clock_time_get": func(_ context.Context, m api.Module, _ uint32, _ uint64, at uint32) uint32 {
			m.Memory().WriteUint64Le(at, 0)
			return 0
		},
		"fd_close":      func(uint32) uint32 { return badFile },
		"fd_fdstat_get": func(uint32, uint32) uint32 { return badFile },
		"fd_seek":       func(uint32, uint64, uint32, uint32) uint32 { return badFile },
		"fd_write":      func(uint32, uint32, uint32, uint32) uint32 { return badFile },
		"random_get":    zero,
	} {
		wasi.NewFunctionBuilder().WithFunc(f).Export(name)
	}
	if _, err := wasi.Instantiate(ctx); err != nil {
		return fmt.Errorf("define the engine's functions of WASI: %w", err)
	}
	return nil
}

// File is a part of a script. Files share their global names.
type File struct{ Name, Text string }

// Program is a script that was loaded: what its memory was then.
type Program struct {
	engine   *Engine
	memory   []byte
	stack    uint64 // the stack's pointer; the stack is below it, and all else above
	function uint64 // where in the memory the script's function is
}

// intrinsics are the parts of JavaScript that scripts have: Eval (which loads them), RegExp, JSON, Proxy, Map and Set,
// typed arrays. They have no Date, Promise, WeakRef.
const intrinsics = 1<<1 | 1<<2 | 1<<3 | 1<<4 | 1<<5 | 1<<6

// Load evaluates the files, in order. The first one's value must be a function, which gets a string and returns one.
func (e *Engine) Load(files ...File) (*Program, error) {
	p := &Program{engine: e}
	i, err := p.instantiate("_initialize")
	if err != nil {
		return nil, err
	}
	defer i.Close()
	_, err = i.limited(LoadSteps, func() error {
		if r, err := i.do("qjs_init2", intrinsics); err != nil || r != 0 {
			return errors.Join(fmt.Errorf("start the engine for scripts: %d", r), err)
		}
		if _, err := i.do("qjs_set_max_stack_size", maxStack); err != nil {
			return err
		}
		for n, f := range files {
			text, err := i.write(f.Text)
			if err != nil {
				return err
			}
			name, err := i.write(f.Name)
			if err != nil {
				return err
			}
			value, err := i.do("qjs_eval", text, uint64(len(f.Text)), name, 0)
			if err == nil {
				err = i.thrown(value)
			}
			if err != nil {
				return err
			}
			if n == 0 {
				p.function = value
			}
		}
		if is, err := i.do("qjs_is_function", p.function); err != nil || is == 0 {
			return errors.Join(errors.New("the script's value is no function"), err)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	memory, _ := i.memory.Read(0, i.memory.Size())
	p.memory, p.stack = bytes.Clone(memory), i.stack.Get()
	return p, nil
}
