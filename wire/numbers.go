package wire

import (
	"bytes"
	"errors"
	"io"
	"math"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/voxelpopuli/voxeld/grid"
)

// newDecoder returns a decoder of valid UTF-8. Escapes may still stand for unpaired surrogates.
func newDecoder(data []byte) *jsontext.Decoder {
	return jsontext.NewDecoder(bytes.NewBuffer(data), jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true))
}

// syntaxError returns the refusal for an error of a decoder.
func syntaxError(err error) *Error {
	var bad *jsontext.SyntacticError
	if errors.Is(err, io.ErrUnexpectedEOF) || !errors.As(err, &bad) {
		return Refuse(FailBadJSON, "the JSON text ends too early")
	}
	return Refuse(FailBadJSON, "bad JSON at byte %d", bad.ByteOffset)
}

// parseNumbers parses an array of at most len(dst) finite numbers in JSON and returns their count. With an error, it
// returns the count of the numbers before it.
func parseNumbers(raw []byte, name string, dst []float64) (n int, refused *Error) {
	d := newDecoder(raw)
	if d.PeekKind() != '[' {
		return 0, Refuse(FailBadType, "%s must be an array of numbers", name)
	}
	if _, err := d.ReadToken(); err != nil {
		return 0, syntaxError(err)
	}
	for d.PeekKind() != ']' {
		token, err := d.ReadToken()
		if err != nil {
			return n, syntaxError(err)
		}
		if token.Kind() != '0' {
			return n, Refuse(FailBadType, "%s must be an array of numbers", name)
		}
		if n == len(dst) {
			return n, Refuse(FailBadValue, "%s has more than %d numbers", name, len(dst))
		}
		if dst[n], err = strconv.ParseFloat(token.String(), 64); err != nil {
			dst[n] = 0
			return n, Refuse(FailBadValue, "%q is too large: %s", name, Clip([]byte(token.String())))
		}
		n++
	}
	if _, err := d.ReadToken(); err != nil {
		return n, syntaxError(err)
	}
	if _, err := d.ReadToken(); !errors.Is(err, io.EOF) {
		return n, Refuse(FailBadJSON, "%s has more than one value", name)
	}
	return n, nil
}

// ParseChunkPos parses [X, Z] within the world, in JSON.
func ParseChunkPos(raw []byte, name string) (grid.ChunkPos, *Error) {
	var xz [2]float64
	n, err := parseNumbers(raw, name, xz[:])
	if err != nil {
		return grid.ChunkPos{}, err
	}
	if n != 2 {
		return grid.ChunkPos{}, Refuse(FailBadValue, "%s must be two numbers, [X, Z]", name)
	}
	return ChunkPosOf(xz[0], xz[1], name)
}

// ChunkPosOf returns the chunk at whole numbers within the world, or an error.
func ChunkPosOf(x, z float64, name string) (grid.ChunkPos, *Error) {
	const most = float64(grid.Limit)
	if x != math.Trunc(x) || z != math.Trunc(z) || x < -most || x >= most || z < -most || z >= most {
		return grid.ChunkPos{}, Refuse(FailBadValue, "%s must be whole numbers from %d to %d", name, -int64(grid.Limit), int64(grid.Limit)-1)
	}
	return grid.ChunkPos{X: int32(x), Z: int32(z)}, nil
}
