// Package meter makes a WebAssembly module count its steps. It is pure. Only package script imports it.
package meter

import (
	"bytes"
	"fmt"
)

const (
	// Interrupt is the imported function, of no arguments and an int32 result, that is called when Steps is below zero.
	Interrupt = "host_interrupt"
	// Steps is the name of the exported, mutable global (i32) that is counted down.
	Steps = "steps"
	// bulk is the binary logarithm of the bytes that an instruction for bulk memory copies or fills for a step.
	bulk = 6
)

// WebAssembly Core Specification 2.0, §5: the sections, and the instructions that are written or looked for here.
const (
	sectionCustom, sectionType, sectionImport, sectionFunction = 0, 1, 2, 3
	sectionGlobal, sectionExport, sectionCode                  = 6, 7, 10

	kindFunction, kindGlobal, typeI32, mutable = 0, 3, 0x7f, 1

	opLoop, opIf, opEnd, opCall, opDrop       = 0x03, 0x04, 0x0b, 0x10, 0x1a
	opLocalGet, opLocalTee                    = 0x20, 0x22
	opGlobalGet, opGlobalSet, opConst         = 0x23, 0x24, 0x41
	opLess, opSub, opShiftRight, opPrefix, of = 0x48, 0x6b, 0x76, 0xfc, 0x40

	opMemoryCopy, opMemoryFill = 10, 11
)

// Add returns the module with a counter: a step at each entry of a function and each round of a loop, and one for each
// 64 bytes that an instruction copies or fills. The module imports Interrupt. Add panics if it finds something that it
// does not know: the module is part of the program.
func Add(module []byte) []byte {
	out := bytes.Clone(module[:8]) // magic number and version
	m := &meter{}
	for r := (&reader{b: module[8:]}); !r.end(); {
		id, section := r.byte(), r.bytes()
		if id == sectionCustom {
			continue // names, which are for debuggers
		}
		section = m.section(id, section)
		out = append(append(out, id), leb(len(section))...)
		out = append(out, section...)
	}
	return out
}

// meter is what is known of the sections that have been read.
type meter struct {
	parameters []int  // of each type
	functions  []int  // the type of each function that the module defines
	interrupt  int    // index of the function Interrupt
	get, set   []byte // instructions that read and write Steps
	step       []byte // instructions that count a step
}

// section returns what a section becomes.
func (m *meter) section(id byte, section []byte) []byte {
	r := &reader{b: section}
	switch id {
	case sectionType:
		for range r.count() {
			r.byte()
			m.parameters = append(m.parameters, len(r.bytes()))
			r.bytes() // results
		}
	case sectionImport:
		for i := range r.count() {
			r.bytes() // module
			name := string(r.bytes())
			if kind := r.byte(); kind != kindFunction {
				panic(fmt.Errorf("meter: %s is imported, and is no function (%d)", name, kind))
			}
			r.count()
			if name == Interrupt {
				m.interrupt = i
			}
		}
	case sectionFunction:
		for range r.count() {
			m.functions = append(m.functions, r.count())
		}
	case sectionGlobal:
		global := r.count() // index of the one that is added
		m.get, m.set = append([]byte{opGlobalGet}, leb(global)...), append([]byte{opGlobalSet}, leb(global)...)
		m.step = join(m.get, []byte{opConst, 1, opSub}, m.set,
			m.get, []byte{opConst, 0, opLess, opIf, of, opCall}, leb(m.interrupt), []byte{opDrop, opEnd})
		return join(leb(global+1), r.b, []byte{typeI32, mutable, opConst, 0, opEnd})
	case sectionExport:
		return join(leb(r.count()+1), r.b, leb(len(Steps)), []byte(Steps), []byte{kindGlobal}, m.get[1:])
	case sectionCode:
		n := r.count()
		code := leb(n)
		for i := range n {
			function := m.function(m.parameters[m.functions[i]], r.bytes())
			code = append(append(code, leb(len(function))...), function...)
		}
		return code
	}
	return section
}

// function returns a function's locals and body with the counter. It has so many parameters.
func (m *meter) function(parameters int, function []byte) []byte {
	r := &reader{b: function}
	groups, locals, all := r.count(), parameters, r.b
	for range groups {
		locals += r.count()
		r.byte()
	}
	length := leb(locals) // of a bulk operation: a local that is added
	charge := join([]byte{opLocalTee}, length, m.get, []byte{opLocalGet}, length, []byte{opConst, bulk, opShiftRight, opSub}, m.set)
	out := join(leb(groups+1), all[:len(all)-len(r.b)], []byte{1, typeI32}, m.step)
	for !r.end() {
		start := r.b
		op, sub := r.instruction()
		if op == opPrefix && (sub == opMemoryCopy || sub == opMemoryFill) {
			out = append(out, charge...)
		}
		out = append(out, start[:len(start)-len(r.b)]...)
		if op == opLoop {
			out = append(out, m.step...)
		}
	}
	return out
}

// reader reads what it has not read yet.
type reader struct{ b []byte }

func (r *reader) end() bool { return len(r.b) == 0 }

func (r *reader) byte() byte {
	c := r.b[0]
	r.b = r.b[1:]
	return c
}

// count reads an unsigned number, or skips a signed one.
func (r *reader) count() (n int) {
	for shift := 0; ; shift += 7 {
		c := r.byte()
		n |= int(c&0x7f) << shift
		if c < 0x80 {
			return n
		}
	}
}

// bytes reads a number, and so many bytes.
func (r *reader) bytes() []byte {
	n := r.count()
	b := r.b[:n]
	r.b = r.b[n:]
	return b
}

// instruction reads an instruction, and returns its code, with the second one of those that have a prefix.
func (r *reader) instruction() (op byte, sub int) {
	op = r.byte()
	switch {
	case op <= 0x01 || op == 0x05 || op == opEnd || op == 0x0f || op == opDrop || op == 0x1b || op >= 0x45 && op <= 0xc4 || op == 0xd1:
	case op >= 0x02 && op <= opIf, op == 0x0c, op == 0x0d, op == opCall, op == 0x12, op >= opLocalGet && op <= 0x26,
		op >= 0x3f && op <= 0x42, op == 0xd0, op == 0xd2: // blocks, branches, calls, variables, tables, sizes of memory, integers
		r.count()
	case op == 0x0e: // br_table
		for range r.count() + 1 {
			r.count()
		}
	case op == 0x11, op == 0x13, op >= 0x28 && op <= 0x3e: // indirect calls; loads and stores
		r.count()
		r.count()
	case op == 0x1c: // select with types
		r.bytes()
	case op == 0x43:
		r.b = r.b[4:]
	case op == 0x44:
		r.b = r.b[8:]
	case op == opPrefix:
		sub = r.count()
		operands := 0
		switch sub {
		case 0, 1, 2, 3, 4, 5, 6, 7: // conversions that saturate
		case 8, opMemoryCopy, 12, 14:
			operands = 2
		case 9, opMemoryFill, 13, 15, 16, 17:
			operands = 1
		default:
			panic(fmt.Errorf("meter: instruction %#x %d", op, sub))
		}
		for range operands {
			r.count()
		}
	default:
		panic(fmt.Errorf("meter: instruction %#x", op))
	}
	return op, sub
}

// leb returns a number in LEB128.
func leb(n int) (b []byte) {
	for ; n >= 0x80; n >>= 7 {
		b = append(b, byte(n)|0x80)
	}
	return append(b, byte(n))
}

func join(parts ...[]byte) []byte { return bytes.Join(parts, nil) }
