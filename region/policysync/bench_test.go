package policysync

import (
	"context"
	"crypto/ed25519"
	"encoding/binary"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/policy"
	"github.com/voxelpopuli/voxeld/store"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

var commands = flag.Int("commands", 20_000, "commands in the log of BenchmarkLog; a full one has 1000000")

const benchWorld = "bench"

// author signs the commands of a player, or of the operator of a node.
type author struct {
	name     string
	key      ed25519.PrivateKey
	operator bool
}

func authorOf(number int) author {
	seed := make([]byte, ed25519.SeedSize)
	binary.BigEndian.PutUint64(seed, uint64(number))
	return author{name: fmt.Sprintf("p%d", number), key: ed25519.NewKeyFromSeed(seed)}
}

func (a author) public() ed25519.PublicKey { return a.key.Public().(ed25519.PublicKey) }

// command returns a command that is entered at a time.
func (a author) command(at time.Time, text string) nodemsg.Act {
	act := nodemsg.Act{At: at.UnixMilli(), Key: a.public(), Seq: uint64(at.UnixMicro()), Name: a.name, Text: text}
	if a.operator {
		act.Name, act.Operator, act.Charter = "", true, 1
	}
	act.Signature = ed25519.Sign(a.key, policy.SignedText(benchWorld, act))
	return act
}

// back returns the command that the player came back.
func (a author) back(at time.Time) nodemsg.Act {
	login := player.Login{Key: [32]byte(a.public()), At: at.UnixMilli()}
	login.Signature = [64]byte(ed25519.Sign(a.key, player.ProofText(login.Nonce("gateway"), benchWorld)))
	act := policy.Seen("gateway", a.name, login)
	act.At = login.At
	return act
}

// visitCommands visits the commands of a world in which, each four minutes, a player registers their name, one comes
// back who registered theirs days ago, one of those claims land, changes the claim or gives it up, and that land is
// rolled back, or a moderator acts.
func visitCommands(count int, visit func(nodemsg.Act)) {
	const (
		days    = 1000 // rounds from a name to its player's return, and on to what they do with their claim
		players = 1    // the number of the first one
	)
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	mod, node := authorOf(0), author{key: authorOf(1 << 40).key, operator: true}
	visit(node.command(at, fmt.Sprintf("role %v moderator", player.IDOf(mod.public()))))
	done := 1
	give := func(act nodemsg.Act) {
		if at = at.Add(time.Minute); done < count {
			visit(act)
			done++
		}
	}
	for i := 0; done < count; i++ {
		give(authorOf(players+i).command(at, "register"))
		if i < 4*days {
			continue
		}
		give(authorOf(players + i - days).back(at))
		land := i - 2*days - i%4 // the player whose claim these four rounds are about
		owner, x, z := authorOf(players+land), land%2000*20, land/2000*20
		box := fmt.Sprintf("%d,0,%d %d,99,%d", x, z, x+9, z+9)
		switch i % 4 {
		case 0:
			give(owner.command(at, fmt.Sprintf("claim %d,%d %d,%d home", x, z, x+9, z+9)))
			give(mod.command(at, fmt.Sprintf("mute p%d 1h", land)))
		case 1:
			give(owner.command(at, fmt.Sprintf("trust home p%d", land-1)))
			give(owner.command(at, fmt.Sprintf("revert p%d %d %s", land-1, at.Add(-time.Hour).Unix(), box)))
		case 2:
			give(owner.command(at, "flag home enter members"))
			give(mod.command(at, fmt.Sprintf("ban p%d 7d griefing", land-2)))
		default:
			if land%8 == 0 { // half of the claims stay, as far as there is room
				give(owner.command(at, "unclaim home"))
			} else {
				give(owner.command(at, "flag home build all"))
			}
			give(owner.command(at, "abort"))
		}
	}
}

// openBench opens a node's copy of the policy in a database.
func openBench(b *testing.B, db *store.DB) *Copy {
	b.Helper()
	c, err := Open(Options{
		World: benchWorld, Storage: db, Issued: func(uint64, ed25519.PublicKey) (bool, error) { return true, nil },
		Operator: Operator{Charter: func() uint64 { return 1 }}, Now: time.Now, Logger: slog.New(slog.DiscardHandler), Registerer: prometheus.NewRegistry(),
	})
	if err != nil {
		b.Fatal(err)
	}
	return c
}

func openDatabase(b *testing.B, path string) *store.DB {
	b.Helper()
	db, err := store.Open(store.Options{Path: path})
	if err != nil {
		b.Fatal(err)
	}
	go db.Run(context.Background()) //nolint:errcheck // until it is closed
	return db
}

func heap() float64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}

// BenchmarkLog measures what a log of commands costs a node: a newcomer that has the pages and applies and stores them,
// without the time of the network, and each start. With -commands 1000000 the log is full.
func BenchmarkLog(b *testing.B) {
	dir := b.TempDir()
	var all []nodemsg.Act
	visitCommands(*commands, func(act nodemsg.Act) { all = append(all, act) })
	path := filepath.Join(dir, "newcomer.db")
	b.Run("newcomer", func(b *testing.B) {
		for b.Loop() {
			os.Remove(path) //nolint:errcheck // it may not be there
			db := openDatabase(b, path)
			c := openBench(b, db)
			for page := range len(all) / nodemsg.ActsPage {
				if err := c.add(all[page*nodemsg.ActsPage : (page+1)*nodemsg.ActsPage]); err != nil {
					b.Fatal(err)
				}
			}
			if err := db.Close(); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(len(all)/nodemsg.ActsPage), "pages")
	})
	all = nil
	b.Run("start", func(b *testing.B) {
		db := openDatabase(b, path)
		before := heap()
		for b.Loop() {
			c := openBench(b, db)
			b.StopTimer()
			state := c.mu.list.state
			b.ReportMetric((heap()-before)/(1<<20), "MiB-heap")
			b.ReportMetric(float64(state.Claims().Count()), "claims")
			b.ReportMetric(state.Used(), "used")
			runtime.KeepAlive(c)
			b.StartTimer()
		}
		if err := db.Close(); err != nil {
			b.Fatal(err)
		}
		file, err := os.Stat(path)
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(file.Size())/(1<<20), "MiB-disk")
	})
}
