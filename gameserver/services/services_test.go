package services

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/voxelpopuli/voxeld/chunk"
	"github.com/voxelpopuli/voxeld/gameserver/interest"
	"github.com/voxelpopuli/voxeld/gameserver/mirror"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/policy"
	"github.com/voxelpopuli/voxeld/region/rollback"
	"github.com/voxelpopuli/voxeld/terrain"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

func FuzzParseKey(f *testing.F) {
	f.Add(NewKey().String())
	f.Add(Key{}.String())
	f.Add("vxs" + strings.Repeat("7", 52)) // bits beyond the key
	f.Fuzz(func(t *testing.T, text string) {
		if k, err := ParseKey(text); err == nil && k.String() != text {
			t.Errorf("%q is read as %v", text, k)
		}
	})
}

// The document lists the requests that there are, with the scopes that they need.
func TestOpenAPIListsTheRoutes(t *testing.T) {
	var document struct {
		Paths map[string]map[string]struct {
			Scope string `json:"x-scope"`
		} `json:"paths"`
	}
	if err := json.Unmarshal(openAPI, &document); err != nil {
		t.Fatal(err)
	}
	listed := make(map[string]string)
	for path, methods := range document.Paths {
		for method, operation := range methods {
			listed[strings.ToUpper(method)+" "+strings.TrimSuffix(Path, "/")+path] = operation.Scope
		}
	}
	served := make(map[string]string)
	for _, r := range routes {
		served[r.pattern] = r.scope
	}
	if !maps.Equal(listed, served) {
		t.Errorf("listed %v\nserved %v", listed, served)
	}
}

func TestKeysTravelOverTLS(t *testing.T) {
	for _, c := range []struct {
		from   string
		tls    bool
		header [2]string
		secure bool
	}{
		{"203.0.113.5:1", true, [2]string{}, true},
		{"203.0.113.5:1", false, [2]string{}, false},
		{"192.168.1.1:1", false, [2]string{}, false},
		{"127.0.0.1:1", false, [2]string{}, true},
		{"[::1]:1", false, [2]string{}, true},
		{"[::ffff:127.0.0.1]:1", false, [2]string{}, true},
		{"127.0.0.1:1", false, [2]string{"X-Forwarded-For", "203.0.113.5"}, false}, // a proxy on this machine, to which it came as it likes
		{"127.0.0.1:1", false, [2]string{"Forwarded", "for=203.0.113.5"}, false},
		{"203.0.113.5:1", false, [2]string{"X-Forwarded-Proto", "https"}, true}, // of a trusted proxy: see package realip
		{"nonsense", false, [2]string{}, false},
	} {
		r := httptest.NewRequest(http.MethodGet, Path, nil)
		r.RemoteAddr = c.from
		if c.tls {
			r.TLS = &tls.ConnectionState{}
		}
		if c.header[0] != "" {
			r.Header.Set(c.header[0], c.header[1])
		}
		if got := secure(r); got != c.secure {
			t.Errorf("%+v: %t", c, got)
		}
	}
}

// bulkOf makes the runs that change the blocks of the edits, and nothing else.
func FuzzBulk(f *testing.F) {
	f.Add([]byte(`{"seq":1,"edits":[{"at":[1,2,3],"from":"air","block":"stone"},{"at":[2,2,3],"from":"air","block":"stone"},{"at":[0,2,3],"from":"dirt","block":"air"}]}`))
	f.Add([]byte(`{"seq":1,"edits":[{"at":[-1,0,-3],"from":"air","block":"stone"},{"at":[-1,0,-3],"from":"air","block":"stone"}]}`))
	f.Add([]byte(`{"seq":1e3,"edits":[{"at":[1,2],"from":"air","block":"stone"}]} {}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		r := httptest.NewRequest(http.MethodPost, Path+"bulk", strings.NewReader(string(body)))
		request, err := decode[editsRequest](&call{Request: r, w: httptest.NewRecorder()})
		if err != nil || len(request.Edits) == 0 {
			return
		}
		for _, e := range request.Edits {
			if e.At.Y < 0 || e.At.Y >= grid.MaxHeight { // place refuses them
				return
			}
		}
		bulk, err := bulkOf(request.Edits)
		if err != nil {
			return
		}
		at, want, got := request.Edits[0].At.Chunk(), make(map[grid.Pos]string), make(map[grid.Pos]string)
		for _, e := range request.Edits {
			want[e.At] = e.From + ">" + e.Block
		}
		for to, from := range bulk.All() {
			got[to.At.Pos(at)] = from.Name() + ">" + to.Block.Name()
		}
		if !maps.Equal(got, want) {
			t.Errorf("%v becomes %v", want, got)
		}
	})
}

// The results of edits reach the request that sent them last, and too many are refused.
func TestAuthorAwaitsItsEdits(t *testing.T) {
	a := newAuthor()
	first, second := make(chan nodemsg.EditResult, 2), make(chan nodemsg.EditResult, 2)
	if !a.await([]uint64{1, 2}, first) {
		t.Fatal("two edits are too many")
	}
	a.leave([]uint64{1, 2}) // the request has timed out
	a.SendResult(nodemsg.EditResult{Seq: 1})
	if len(first) != 0 || !a.await([]uint64{2, 3}, second) {
		t.Error("a request that has ended gets a result, or its edits cannot be sent again")
	}
	a.SendResult(nodemsg.EditResult{Seq: 2, Refused: "claimed"})
	if r := <-second; r.Refused != "claimed" {
		t.Errorf("the result is %+v", r)
	}
	many := make([]uint64, maxUnanswered)
	for i := range many {
		many[i] = uint64(10 + i)
	}
	if a.await(many, second) || !a.await(many[:maxUnanswered-1], second) || !a.await(many[:5], second) {
		t.Errorf("one edit and %d more may wait, also again", maxUnanswered-1)
	}
}

func TestBlockNamesAreUnique(t *testing.T) {
	n := 0
	for b := chunk.Air; b.Known(); b++ {
		n++
	}
	if len(blockNames) != n {
		t.Errorf("%d blocks have %d names", n, len(blockNames))
	}
}

func TestLinesHaveGrowingNumbers(t *testing.T) {
	a := newAuthor()
	var numbers []uint64
	for _, at := range []uint64{100, 100, 90, 200} {
		numbers = append(numbers, a.nextLine(at))
	}
	if want := []uint64{100, 101, 102, 200}; !slices.Equal(numbers, want) {
		t.Error(fmt.Sprint(numbers, " want ", want))
	}
}

// patientRecorder is a response that is written to at any time.
type patientRecorder struct{ *httptest.ResponseRecorder }

func (patientRecorder) SetWriteDeadline(time.Time) error { return nil }

// Who comes and who leaves is told only while all players are listed.
func TestPlayersComeAndLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var names []string
		unlisted := uint64(0)
		s := &Server{metrics: newMetrics(prometheus.NewRegistry()), Options: Options{
			Names: func(context.Context) ([]string, uint64) { return names, uint64(len(names)) + unlisted }, Wall: time.Now,
		}}
		out := patientRecorder{httptest.NewRecorder()}
		st := &stream{s: s, c: &call{w: out}, out: http.NewResponseController(out), players: make(map[string]bool)}
		for _, step := range []struct {
			names    []string
			unlisted uint64
			want     string
		}{
			{[]string{"ann"}, 0, `players {"names":["ann"]}`},
			{[]string{"ann", "bob"}, 0, `join {"name":"bob"}`},
			{[]string{"zoe"}, 100, ""},
			{[]string{"bob", "zoe"}, 1, ""},
			{[]string{"bob"}, 0, `leave {"name":"ann"}`},
			{[]string{"bob"}, 0, ""},
		} {
			names, unlisted = step.names, step.unlisted
			time.Sleep(playersEvery + time.Millisecond)
			out.Body.Reset()
			if err := st.sendPlayers(t.Context()); err != nil {
				t.Fatal(err)
			}
			_, got, _ := strings.Cut(strings.TrimSpace(out.Body.String()), "event: ")
			if got = strings.Replace(got, "\ndata:", "", 1); got != step.want {
				t.Errorf("%v and %d more: %q, want %q", step.names, step.unlisted, got, step.want)
			}
		}
	})
}

// log is the history of a chunk. A page after the first ends now, as rollback.Keeper's does, unless a query says when.
type log []nodemsg.HistoryRecord

func (l log) Query(_ context.Context, q rollback.Query) (r rollback.Result, err error) {
	if q.Most > nodemsg.HistoryPage && q.Until == 0 {
		q.Until = time.Now().UnixMilli()
	}
	for _, e := range l {
		if e.Time >= q.Since && (q.Until == 0 || e.Time <= q.Until) && len(r.Records) < q.Most {
			r.Records = append(r.Records, e)
		}
	}
	return r, nil
}

// A leader's clock may be ahead of this node's: its edits are sent at once.
func TestEditsOfLeadersThatAreAhead(t *testing.T) {
	now := time.Now()
	out := patientRecorder{httptest.NewRecorder()}
	s := &Server{metrics: newMetrics(prometheus.NewRegistry()), Options: Options{
		Wall: time.Now, Policy: func(read func(*policy.State)) { read(policy.New()) },
	}}
	st := &stream{s: s, c: &call{w: out}, out: http.NewResponseController(out)}
	p := &position{at: now.UnixMilli()}
	var all log
	for i := range int64(3) {
		all = append(all, nodemsg.HistoryRecord{Time: now.Add(time.Second).UnixMilli() + i, New: chunk.Stone})
		s.History = all
		if _, err := st.sendPage(t.Context(), grid.ChunkPos{}, p); err != nil {
			t.Fatal(err)
		}
		if sent := strings.Count(out.Body.String(), "event: edit"); sent != len(all) {
			t.Errorf("%d edits are sent, want %d", sent, len(all))
		}
	}
}

// noOverlay is an Overlay that is not enabled.
type noOverlay struct{}

func (noOverlay) Enabled() bool                                      { return false }
func (noOverlay) Merge(*nodemsg.ChunkDelta, func(id player.ID) bool) {}
func (noOverlay) Clear(grid.ChunkPos)                                {}

// The id of an event is no later than what was sent of land that cannot be reached.
func TestCursorWaitsForLandThatIsAway(t *testing.T) {
	ground, err := terrain.New(terrain.Params{Seed: 7, Sections: 1, Version: terrain.Version})
	if err != nil {
		t.Fatal(err)
	}
	m := mirror.New(mirror.Options{
		Terrain: ground, Interest: interest.New(interest.Options{Budget: 1000}), Overlay: noOverlay{}, Height: grid.ChunkSize, Peer: "peer",
		Now: func() time.Duration { return 0 }, Wall: time.Now, Run: func(func(context.Context)) bool { return true }, // its links are not made
		Logger: slog.New(slog.DiscardHandler), Registerer: prometheus.NewRegistry(),
	})
	v := &view{subs: make(map[grid.ChunkPos]*mirror.Subscription)}
	at := grid.ChunkPos{}
	v.subs[at] = m.Watch(at, v)
	defer v.close()
	const before = 1000
	st := &stream{s: &Server{Options: Options{Wall: time.Now}}, view: v, chunks: map[grid.ChunkPos]*position{at: {at: before}}}
	if err := st.sendEdits(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := st.cursor(); got != before {
		t.Errorf("the id is %d, want %d", got, before)
	}
}

// A service's newest streams are those that it reads.
func TestNewStreamsReplaceTheOldest(t *testing.T) {
	s := &Server{metrics: newMetrics(prometheus.NewRegistry())}
	s.streams.mu.all = make(map[*stream]struct{})
	var all []*stream
	for range streamsPerService + 2 {
		st := &stream{c: &call{service: &policy.Service{}}}
		if err := s.open(st); err != nil {
			t.Fatal(err)
		}
		all = append(all, st)
	}
	for i, st := range all {
		if got := st.replaced.Load(); got != (i < 2) {
			t.Errorf("stream %d is replaced: %t", i, got)
		}
	}
}
