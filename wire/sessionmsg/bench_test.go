package sessionmsg

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/motion"
	"github.com/voxelpopuli/voxeld/player"
)

// crowdPiece returns the piece of a chunk in which the given number of avatars move.
func crowdPiece(avatars int) Piece {
	p := Piece{Chunk: grid.ChunkPos{X: -3, Z: 7}}
	for i := range avatars {
		p.Moves = append(p.Moves, AvatarMove{
			Player: player.GuestID(fmt.Sprint(i)).String(),
			Pose:   motion.Pose{X: -95.25 + float64(i%32)/1.03, Y: 64, Z: 225.5 + float64(i%29)/1.07, Yaw: 1.25},
		})
	}
	return p
}

func BenchmarkEncodePiece(b *testing.B) {
	for _, avatars := range []int{1, 100, 1000} {
		b.Run(fmt.Sprintf("avatars=%d", avatars), func(b *testing.B) {
			p := crowdPiece(avatars)
			b.ReportAllocs()
			bytes := 0
			for b.Loop() {
				data, err := EncodePiece(p)
				if err != nil {
					b.Fatal(err)
				}
				bytes = len(data)
			}
			b.ReportMetric(float64(bytes)/float64(avatars), "bytes/avatar")
		})
	}
}

func BenchmarkAppendFrame(b *testing.B) {
	piece, err := EncodePiece(crowdPiece(100))
	if err != nil {
		b.Fatal(err)
	}
	pieces := []json.RawMessage{piece, piece, piece}
	b.ReportAllocs()
	var frame []byte
	for b.Loop() {
		frame = AppendFrame(frame[:0], 1234567, pieces...)
	}
}

func BenchmarkDecodeClientCBOR(b *testing.B) {
	for _, m := range []FromClient{Move{motion.Pose{X: 1234.5, Y: 64, Z: -3.25, Yaw: 1.5}}, Edit{Seq: 1767225600000000, X: 12, Y: 63, Z: -4000, Block: 4}, Chat{Text: "hello there"}} {
		b.Run(m.clientType(), func(b *testing.B) {
			data, err := EncodeClientCBOR(m)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := DecodeClientCBOR(data); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkEncodeAckCBOR(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := EncodeServerCBOR(Ack{Seq: 1767225600000000, Block: 4}); err != nil {
			b.Fatal(err)
		}
	}
}
