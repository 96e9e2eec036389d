package actor

import (
	"bufio"
	"bytes"
	"fmt"
	"testing"

	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

// A tick of 1,000 players on four gateways, who all move and in part build and chat, costs the leader four frames.
func TestCrowdCostsAFrameForEachGateway(t *testing.T) {
	const gateways, players, ticks = 4, 1000, 20
	l, g := scripted()
	var links []*Subscription
	bodies := make([][]nodemsg.Body, gateways)
	for i := range gateways {
		links = append(links, newLink(l))
		for n := range players / gateways {
			name := fmt.Sprintf("p%d_%d", i, n)
			b := body(player.GuestID(name), here)
			b.Name = name
			bodies[i] = append(bodies[i], b)
		}
		send(l, links[i], nodemsg.ToRegion{Watch: []grid.ChunkPos{here}, Enter: bodies[i]})
	}
	steps(l)
	for _, link := range links {
		drain(link)
	}
	for tick := range ticks {
		for i, link := range links {
			msg := nodemsg.ToRegion{Chat: []nodemsg.ChatEvent{{Player: bodies[i][0].Player, Name: bodies[i][0].Name, Chunk: here, Text: "hello"}}}
			for n := range bodies[i] {
				bodies[i][n].Pose.X += .01
				msg.Moves = append(msg.Moves, nodemsg.BodyMove{Player: bodies[i][n].Player, Pose: bodies[i][n].Pose})
			}
			edit := stone(uint64(tick + 1))
			edit.Player = bodies[i][0].Player
			msg.Edits = []nodemsg.Intent{edit}
			send(l, link, msg)
		}
		g.commit()
		l.step()
		for i, link := range links {
			frames, _ := drain(link)
			if len(frames) != 1 {
				t.Fatalf("tick %d: gateway %d gets %d frames", tick, i, len(frames))
			}
			if n := frames[0].Chunks[0]; len(n.Moves) != players || len(n.Chat) != gateways {
				t.Fatalf("tick %d: gateway %d gets %d moves and %d words", tick, i, len(n.Moves), len(n.Chat))
			}
		}
	}
}

// BenchmarkLinkFrame measures the encoding and decoding of a frame with the moves of a crowd.
func BenchmarkLinkFrame(b *testing.B) {
	frame := nodemsg.FromRegion{Tick: 1, Chunks: []nodemsg.ChunkDelta{{Chunk: here}}}
	for i := range 1000 {
		frame.Chunks[0].Moves = append(frame.Chunks[0].Moves, nodemsg.BodyMove{Player: player.GuestID(fmt.Sprint(i)), Pose: body(alice, here).Pose})
	}
	b.Run("write", func(b *testing.B) {
		var sink countingWriter
		b.ReportAllocs()
		for b.Loop() {
			if err := wire.WriteFrame(&sink, frame); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(sink)/float64(b.N), "bytes/frame")
	})
	b.Run("read", func(b *testing.B) {
		var sent bytes.Buffer
		if err := wire.WriteFrame(&sent, frame); err != nil {
			b.Fatal(err)
		}
		from := bytes.NewReader(sent.Bytes())
		in := bufio.NewReader(from)
		b.ReportAllocs()
		for b.Loop() {
			from.Reset(sent.Bytes())
			in.Reset(from)
			if _, err := wire.ReadFrame[nodemsg.FromRegion](in, wire.MaxFrame); err != nil {
				b.Fatal(err)
			}
		}
	})
}

type countingWriter int

func (c *countingWriter) Write(p []byte) (int, error) {
	*c += countingWriter(len(p))
	return len(p), nil
}
