package script_test

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/voxelpopuli/voxeld/script"
	"github.com/voxelpopuli/voxeld/script/meter"
)

// steps are those of a call.
const steps = 300_000

var shared = sync.OnceValues(script.NewEngine)

func load(t testing.TB, text string) *script.Instance {
	t.Helper()
	engine, err := shared()
	if err != nil {
		t.Fatal(err)
	}
	program, err := engine.Load(script.File{Name: "main.js", Text: text})
	if err != nil {
		t.Fatalf("load: %v", err)
	}
	i, err := program.Instance()
	if err != nil {
		t.Fatalf("instance: %v", err)
	}
	t.Cleanup(i.Close)
	return i
}

// With another engine or another meter, scripts take other numbers of steps.
func TestMeteredEngine(t *testing.T) {
	module, err := os.ReadFile("engine/quickjs.wasm")
	if err != nil {
		t.Fatalf("%v: run make", err)
	}
	sum := sha256.Sum256(meter.Add(module))
	if got, want := hex.EncodeToString(sum[:]), "5efe086eb1eb479f98c299916bee33e4d23c03c294e484aeaa2859610b16d18b"; got != want {
		t.Errorf("the metered engine has the hash %s, want %s", got, want)
	}
}

func TestCall(t *testing.T) {
	i := load(t, `let n = 0; s => JSON.stringify([s, ++n, typeof Date, typeof Promise, Math.random()])`)
	first, used, err := i.Call("grüße", steps)
	if err != nil || !strings.HasPrefix(first, `["grüße",1,"undefined","undefined",0.`) {
		t.Fatalf("called: %s, %v", first, err)
	}
	for range 3 { // nothing is left of a call, not even how many random numbers it has drawn
		again, usedAgain, err := i.Call("grüße", steps)
		if err != nil || again != first || usedAgain != used {
			t.Errorf("called again: %s in %d steps, %v; want %s in %d", again, usedAgain, err, first, used)
		}
	}
	if _, usedLess, err := i.Call("grüße", used-1); !errors.Is(err, script.ErrSteps) {
		t.Errorf("called with a step less: %v after %d of %d steps", err, usedLess, used)
	}
	if _, _, err := i.Call("grüße", used); err != nil {
		t.Errorf("called with exactly its steps: %v", err)
	}
}

func TestExceptionSaysWhere(t *testing.T) {
	i := load(t, "s => {\n  return s.missing.value;\n}")
	_, _, err := i.Call("", steps)
	if thrown, ok := errors.AsType[script.Error](err); !ok || !strings.HasPrefix(thrown.Text, "TypeError: ") || !strings.HasSuffix(thrown.Text, " (main.js:2:10)") {
		t.Errorf("the exception is %v", err)
	}
}

func TestLoadFails(t *testing.T) {
	engine, err := shared()
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"1 +":       "SyntaxError",
		"missing()": "ReferenceError: missing is not defined (main.js:1:1)",
		"for (;;);": script.ErrSteps.Error(),
		"const a = []; for (;;) a.push(new Uint8Array(1e6))": script.ErrMemory.Error(),
		"42": "no function",
	} {
		if _, err := engine.Load(script.File{Name: "main.js", Text: text}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("load %q: %v, want %q", text, err, want)
		}
	}
}

// Each of these has, in one engine for scripts or another, held the process up, or filled the machine's memory.
func TestHostileScripts(t *testing.T) {
	for name, text := range map[string]string{
		"loop":          `for(;;);`,
		"loop-catch":    `for(;;){try{for(;;);}catch(e){}finally{continue}}`,
		"recursion":     `const f=n=>1+f(n+1);f(0)`,
		"recursion-try": `const f=()=>{try{f()}catch(e){f()}};f()`,
		"json-depth":    `JSON.parse('['.repeat(1000000))`,
		"array-grow":    `const a=[];for(;;)a.push([1,2,3,4])`,
		"array-catch":   `let a=[];for(;;){try{a.push(new Array(1000).fill(1))}catch(e){}}`,
		"string-double": `let x='x';for(;;)x+=x`,
		"repeat":        `return 'a'.repeat(1e9).length`,
		"rope":          `let x='x'.repeat(1e5),a=[];for(;;){a.push(x.slice(1)+'y')}`,
		"array-fill":    `return new Array(1e9).fill(0).length`,
		"typed":         `return ''+new Uint8Array(1e9).length`,
		"regex-bomb":    `return ''+/^(a+)+$/.test('a'.repeat(64)+'b')`,
		"regex-look":    `return ''+/(?=(a+)+b)\1c/.test('a'.repeat(64))`,
		"regex-long":    `return ''+/(.*)*x/.test('a'.repeat(1e6))`,
		"indexOf":       `return ''+Array.prototype.indexOf.call({length:2**53-1},1)`,
		"lastIndexOf":   `return ''+Array.prototype.lastIndexOf.call({length:2**53-1},1)`,
		"strstr":        `return ''+'a'.repeat(1<<20).indexOf('a'.repeat(1<<19)+'b')`,
		"join":          `const a=[];a.length=4e9;return ''+a.join('').length`,
		"sort":          `const a=[];a.length=4e9;a.sort();return ''`,
		"reverse":       `return ''+Array.prototype.reverse.call({length:2**53-1})`,
		"keys":          `const p=new Proxy({}, {ownKeys(){return []}});for(;;)Object.keys(p)`,
		"throws":        `throw new Error('x'.repeat(100000))`,
		"output":        `return 'x'.repeat(3e6)`,
		"async":         `return (async () => 1)()`,
		"getter":        `throw Object.create(null, {stack: {get() { for(;;); }}})`,
	} {
		t.Run(name, func(t *testing.T) {
			i := load(t, `s => { if (s === "well") return s; `+text+`}`)
			for _, steps := range []int64{steps, 100 * steps} { // with the larger number, memory is what ends some
				_, used, err := i.Call("", steps)
				if err == nil || used > steps+script.MaxMemory/64 { // an instruction that fills memory is charged at once
					t.Errorf("%v after %d steps, of %d", err, used, steps)
				}
				if out, _, err := i.Call("well", steps); out != "well" || err != nil {
					t.Errorf("afterwards: %q, %v", out, err)
				}
			}
		})
	}
}

// What a script throws is printed in operators' terminals.
func TestExceptionsArePlainText(t *testing.T) {
	i := load(t, `s => { throw s }`)
	for in, want := range map[string]string{
		"\x1b[2Jall is well\nrule":     " [2Jall is well rule",
		strings.Repeat("ä", 200):       strings.Repeat("ä", 150),
		"x" + strings.Repeat("ä", 200): "x" + strings.Repeat("ä", 149),
	} {
		if _, _, err := i.Call(in, steps); err == nil || err.Error() != want {
			t.Errorf("%q is thrown as %q, want %q", in, err, want)
		}
	}
}

func BenchmarkCall(b *testing.B) {
	i := load(b, `s => JSON.stringify(JSON.parse(s))`)
	for b.Loop() {
		if _, _, err := i.Call(`{"kind":"use","pos":[12,64,-7],"block":"lamp"}`, steps); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkEndlessLoop(b *testing.B) {
	i := load(b, `s => {for(;;);}`)
	for b.Loop() {
		if _, _, err := i.Call("", steps); !errors.Is(err, script.ErrSteps) {
			b.Fatal(err)
		}
	}
}
