// Package contents keeps what the world's policy names by its hash, such as the archives of mods, on every node. What a
// node lacks it fetches from others, and verifies. The contents themselves mean nothing to it.
package contents

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/voxelpopuli/voxeld/internal/kv"
	"github.com/voxelpopuli/voxeld/region/transport"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

// Table holds the contents: hash, 32 bytes → content, deflated.
const Table = "contents"

const (
	// every is how often a Store looks what the policy names, and retry how often it asks for a content that it lacks.
	every, retry = time.Second, 5 * time.Second
	// keepFor is how long a content is kept that the policy does not name: the command that names it may be on its way.
	keepFor = time.Hour
	// askedAtOnce is how many nodes are asked for a content at once.
	askedAtOnce = 8
)

// Hash is the SHA-256 of a content.
type Hash = [sha256.Size]byte

// ErrMissing is returned for a content that this node does not have.
var ErrMissing = errors.New("this node does not have that content yet")

// Storage is where a Store keeps contents.
type Storage interface {
	Get(table string, key []byte) ([]byte, error)
	kv.Scanner
	Commit(writes []kv.Write) error
}

// Options configure a Store. All fields are required.
type Options struct {
	Self    string // peer id
	Storage Storage
	Fetch   func(ctx context.Context, peer string, f nodemsg.Fetch) (nodemsg.Fetched, error)
	Known   func() []string // nodes that may have what this one lacks
	Wanted  func() []Hash   // what the policy names
	Logger  *slog.Logger
}

// Store keeps contents. Any goroutine may use it.
type Store struct {
	Options

	mu struct {
		sync.Mutex
		unwanted map[Hash]time.Time // the contents that are stored; since when the policy does not name them, zero if it does
	}
	asked map[Hash]time.Time // when a content that is missing was last asked for; only Run uses it
}

// Open returns a store with the contents that are stored.
func Open(o Options) (*Store, error) {
	s := &Store{Options: o, asked: make(map[Hash]time.Time)}
	s.mu.unwanted = make(map[Hash]time.Time)
	err := o.Storage.Scan(Table, nil, func(key, _ []byte) error {
		if len(key) == len(Hash{}) {
			s.mu.unwanted[Hash(key)] = time.Time{}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list contents: %w", err)
	}
	return s, nil
}

// Has reports whether this node has a content.
func (s *Store) Has(hash Hash) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, stored := s.mu.unwanted[hash]
	return stored
}

// Put stores a content, which the policy is about to name.
func (s *Store) Put(content []byte) (Hash, error) {
	hash := sha256.Sum256(content)
	if len(content) > nodemsg.MaxContent {
		return hash, fmt.Errorf("a content of %d bytes, and at most %d are allowed", len(content), nodemsg.MaxContent)
	}
	packed, err := wire.NewDeflater().Deflate(content)
	if err != nil {
		return hash, err
	}
	return hash, s.put(hash, packed)
}

func (s *Store) put(hash Hash, packed []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.Storage.Commit([]kv.Write{{Table: Table, Key: hash[:], Value: packed}}); err != nil {
		return fmt.Errorf("keep content: %w", err)
	}
	s.mu.unwanted[hash] = time.Time{}
	return nil
}

// Get returns a content, or ErrMissing.
func (s *Store) Get(hash Hash) ([]byte, error) {
	packed, err := s.Storage.Get(Table, hash[:])
	if err != nil {
		return nil, err
	}
	err = ErrMissing
	var content []byte
	if packed != nil {
		content, err = open(packed, hash)
	}
	if err != nil { // it is to be fetched again
		s.mu.Lock()
		delete(s.mu.unwanted, hash)
		s.mu.Unlock()
	}
	return content, err
}

// open inflates a content, and verifies its hash.
func open(packed []byte, hash Hash) ([]byte, error) {
	content, err := wire.Inflate("content", packed, nodemsg.MaxContent)
	if err == nil && sha256.Sum256(content) != hash {
		err = errors.New("the content has another hash")
	}
	return content, err
}

// Sound reports whether a row of Table is the content that its key names.
func Sound(key, value []byte) bool {
	if len(key) != len(Hash{}) {
		return false
	}
	_, err := open(value, Hash(key))
	return err == nil
}

// Serve answers another node's request.
func (s *Store) Serve(want nodemsg.ContentOf) nodemsg.Fetched {
	packed, err := s.Storage.Get(Table, want.Hash[:])
	if err == nil && packed == nil {
		err = ErrMissing
	}
	if err != nil {
		return nodemsg.Fetched{Error: transport.Clip(err)}
	}
	return nodemsg.Fetched{Data: packed}
}

// Run fetches what the policy names and is not here, and deletes what it no longer names, until ctx ends.
func (s *Store) Run(ctx context.Context) {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			s.step(ctx, time.Now())
		}
	}
}

func (s *Store) step(ctx context.Context, now time.Time) {
	wanted := make(map[Hash]bool)
	for _, hash := range s.Wanted() {
		wanted[hash] = true
		if s.Has(hash) || now.Sub(s.asked[hash]) < retry {
			continue
		}
		_, again := s.asked[hash]
		s.asked[hash] = now
		if err := s.fetch(ctx, hash); err == nil {
			delete(s.asked, hash)
		} else if !again && ctx.Err() == nil {
			s.Logger.Warn("a content that the policy names is missing on this node; it goes on asking", "hash", text(hash), "error", err)
		}
	}
	for hash := range s.asked {
		if !wanted[hash] {
			delete(s.asked, hash)
		}
	}
	if err := s.forget(wanted, now); err != nil {
		s.Logger.Warn("a content that is not needed cannot be deleted", "error", err)
	}
}

// fetch fetches a content from the first node that sends it. It asks askedAtOnce nodes at once: many may be down.
func (s *Store) fetch(ctx context.Context, hash Hash) error {
	errFetched := errors.New("fetched")
	asking, ctx := errgroup.WithContext(ctx)
	asking.SetLimit(askedAtOnce)
	for _, peer := range s.Known() {
		if peer == s.Self || ctx.Err() != nil {
			continue
		}
		asking.Go(func() error {
			got, err := s.Fetch(ctx, peer, nodemsg.Fetch{Content: &nodemsg.ContentOf{Hash: hash}})
			if err == nil {
				_, err = open(got.Data, hash)
			}
			if err != nil {
				s.Logger.Debug("content not fetched", "peer", peer, "hash", text(hash), "error", err)
				return nil
			}
			return cmp.Or(s.put(hash, got.Data), errFetched)
		})
	}
	switch err := asking.Wait(); {
	case err == nil:
		return ErrMissing
	case !errors.Is(err, errFetched):
		return err
	}
	return nil
}

// forget deletes what has not been wanted for keepFor.
func (s *Store) forget(wanted map[Hash]bool, now time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var gone []kv.Write
	for hash, since := range s.mu.unwanted {
		switch {
		case wanted[hash]:
			s.mu.unwanted[hash] = time.Time{}
		case since.IsZero():
			s.mu.unwanted[hash] = now
		case now.Sub(since) >= keepFor:
			gone = append(gone, kv.Write{Table: Table, Key: hash[:]})
		}
	}
	if len(gone) == 0 {
		return nil
	}
	if err := s.Storage.Commit(gone); err != nil {
		return err
	}
	for _, row := range gone {
		delete(s.mu.unwanted, Hash(row.Key))
	}
	return nil
}

// text returns a hash as commands have it.
func text(hash Hash) string { return base64.RawURLEncoding.EncodeToString(hash[:]) }
