package services

import (
	"context"
	"crypto/ed25519"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/semaphore"
	"golang.org/x/time/rate"

	"github.com/voxelpopuli/voxeld/gameserver/admission"
	"github.com/voxelpopuli/voxeld/gameserver/mirror"
	"github.com/voxelpopuli/voxeld/grid"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/policy"
	"github.com/voxelpopuli/voxeld/policy/place"
	"github.com/voxelpopuli/voxeld/region"
	"github.com/voxelpopuli/voxeld/region/rollback"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
	"github.com/voxelpopuli/voxeld/world"
)

// Path is below which the API is served.
const Path = "/api/v1/"

// Limits of a service at a node; docs/services.md lists them.
const (
	requestsPerSecond, requestsAtOnce = 20, 40
	blocksPerSecond, blocksAtOnce     = 200, 4096 // unless the service has a rate; at once holds for all
	linesPerSecond, linesAtOnce       = 1, 5
	streamsPerService                 = 4
	// Other nodes take 10 lines a second of this one, 5 of which its players may write.
	nodeLinesPerSecond, nodeLinesAtOnce = 2, 10
	questionsPerSecond                  = 20
	// requestTime bounds a request but those for events.
	requestTime = 15 * time.Second
	// maxBody bounds the body of a request: a bulk edit has 2,048 blocks of some 80 bytes.
	maxBody = 256 << 10
	// readsAtOnce is how many requests of all services read land or history at once; others wait.
	readsAtOnce = 4
)

// Options are the dependencies of a Server. All but Ranges are required.
type Options struct {
	World   world.Genesis
	Policy  func(read func(*policy.State))
	History interface {
		Query(ctx context.Context, q rollback.Query) (rollback.Result, error)
	}
	Ranges func(context.Context, region.RangeQuery) (region.RangeResult, error) // nil: areas are not listed
	Mirror *mirror.Mirror
	// Names returns the names of the players on this node and on the others, and how many there are.
	Names func(context.Context) (names []string, players uint64)
	Nodes func() int              // of the world, that this node is connected with, and this one
	Say   func(nodemsg.WorldLine) // shows a line to all players of the world
	// Lines calls begin with the last lines to the world. PublishLine is called with each that follows them, under the
	// same lock.
	Lines      func(begin func(recent []nodemsg.ChatEvent))
	Client     func(net.Addr) admission.Client
	Wall       func() time.Time // the time of the world
	Logger     *slog.Logger
	Registerer prometheus.Registerer
}

// Server serves the API. Create it with New.
type Server struct {
	Options
	metrics *metrics
	reads   *semaphore.Weighted
	lines   *rate.Limiter // of all services
	// questions bounds what all services ask the leaders of land about its history and its players. They answer a node 40 a
	// second, which moderators' questions and the map's need, too.
	questions *rate.Limiter
	mux       *http.ServeMux
	roster    roster
	streams   streams

	mu struct {
		sync.Mutex
		authors map[player.ID]*author // of services that have sent a request
	}
}

//go:embed openapi.json
var openAPI []byte

// route is what a service can request.
type route struct {
	pattern string
	scope   string // that it needs; empty: none
	serve   func(*Server, *call) (answer any, err error)
	streams bool // it is answered for as long as the service listens
}

// name returns the label of the route in metrics.
func (r route) name() string {
	method, path, _ := strings.Cut(r.pattern, " "+Path)
	return strings.ToLower(method) + "_" + path
}

var routes = []route{
	{"GET " + Path + "service", "", (*Server).getService, false},
	{"GET " + Path + "world", policy.ScopeRead, (*Server).getWorld, false},
	{"GET " + Path + "players", policy.ScopeRead, (*Server).getPlayers, false},
	{"GET " + Path + "area", policy.ScopeRead, (*Server).getArea, false},
	{"GET " + Path + "blocks", policy.ScopeRead, (*Server).getBlocks, false},
	{"GET " + Path + "history", policy.ScopeRead, (*Server).getHistory, false},
	{"GET " + Path + "events", policy.ScopeRead, (*Server).getEvents, true},
	{"POST " + Path + "edits", policy.ScopeEdit, (*Server).postEdits, false},
	{"POST " + Path + "bulk", policy.ScopeEdit, (*Server).postBulk, false},
	{"POST " + Path + "chat", policy.ScopeChat, (*Server).postChat, false},
}

// New returns a Server.
func New(o Options) *Server {
	s := &Server{Options: o, metrics: newMetrics(o.Registerer), reads: semaphore.NewWeighted(readsAtOnce), lines: rate.NewLimiter(nodeLinesPerSecond, nodeLinesAtOnce), questions: rate.NewLimiter(questionsPerSecond, questionsPerSecond), mux: http.NewServeMux()}
	s.mu.authors = make(map[player.ID]*author)
	s.streams.mu.all = make(map[*stream]struct{})
	s.mux.HandleFunc("GET "+Path+"openapi.json", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Write(openAPI) //nolint:errcheck // the client left
	})
	for _, r := range routes {
		s.mux.HandleFunc(r.pattern, func(w http.ResponseWriter, request *http.Request) { s.answer(w, request, r) })
	}
	s.mux.HandleFunc(Path, func(w http.ResponseWriter, _ *http.Request) {
		s.reply(w, nil, &Error{http.StatusNotFound, "not_found", "there is no such request: GET " + Path + "openapi.json lists them"})
	})
	return s
}

// ServeHTTP answers a request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.mux.ServeHTTP(w, r) }

// Error is why a request is refused.
type Error struct {
	status  int
	Code    string `json:"code"`
	Message string `json:"message"`
}

// Error returns the message.
func (e *Error) Error() string { return e.Message }

func badRequest(format string, args ...any) error {
	return &Error{http.StatusBadRequest, "bad_request", fmt.Sprintf(format, args...)}
}

var (
	errInsecure = &Error{http.StatusForbidden, "insecure", "a key travels over https only, or on this machine: this request came over plain http, so replace the key (voxeld service add)"}
	errPlain    = &Error{http.StatusForbidden, "insecure", "the API is for requests over https, or from this machine"}
	errNoKey    = &Error{http.StatusUnauthorized, "bad_key", "the header Authorization must be \"Bearer KEY\", with the key of a service that was neither removed nor banned, and has not ended"}
	errRate     = &Error{http.StatusTooManyRequests, "rate", "that is more than this service may do: try again later"}
	errBusy     = &Error{http.StatusServiceUnavailable, "unavailable", "this node is busy, or the land does not answer: try again later, or at another node"}
	errOutside  = &Error{http.StatusForbidden, "outside", "that is outside of the service's area, or of the world's border"}
)

// call is a request of a service.
type call struct {
	*http.Request
	w       http.ResponseWriter
	service *policy.Service
	key     ed25519.PrivateKey
	author  *author
	border  *place.Border // of the world
	remote  net.Addr
}

// answer answers a request for a route.
func (s *Server) answer(w http.ResponseWriter, r *http.Request, to route) {
	c, err := s.authenticate(w, r, to.scope)
	var answer any
	if err == nil {
		if !to.streams {
			ctx, cancel := context.WithTimeout(r.Context(), requestTime)
			defer cancel()
			c.Request = r.WithContext(ctx)
		}
		answer, err = to.serve(s, c)
	}
	code := "ok"
	if err != nil {
		code = refusalOf(err).Code
	}
	s.metrics.requests.WithLabelValues(to.name(), outcomeOf(err)).Inc()
	if c != nil && strings.HasPrefix(to.pattern, http.MethodPost) {
		s.Logger.Info("request of a service", "service", c.service.Name, "request", to.name(), "address", r.RemoteAddr, "outcome", code)
	}
	if err != nil || answer != nil {
		s.reply(w, answer, err)
	}
}

// refusalOf returns an error as services are told it.
func refusalOf(err error) *Error {
	var refusal *Error
	switch {
	case errors.As(err, &refusal):
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		refusal = errBusy
	default:
		refusal = &Error{http.StatusBadRequest, "bad_request", err.Error()}
	}
	return refusal
}

func (s *Server) reply(w http.ResponseWriter, answer any, err error) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	if err != nil {
		refusal := refusalOf(err)
		answer = map[string]*Error{"error": refusal}
		if refusal.status == http.StatusTooManyRequests || refusal.status == http.StatusServiceUnavailable {
			w.Header().Set("Retry-After", "1")
		}
		w.WriteHeader(refusal.status)
	}
	json.NewEncoder(w).Encode(answer) //nolint:errcheck,errchkjson // the client left
}

// secure reports whether nobody on the way can have read a request: it came over TLS, to this node or to a trusted
// proxy, or from this machine. Package realip has removed what others than trusted proxies say.
func secure(r *http.Request) bool {
	if r.TLS != nil || r.Header.Get("X-Forwarded-Proto") == "https" {
		return true
	}
	from, err := netip.ParseAddrPort(r.RemoteAddr)
	return err == nil && from.Addr().Unmap().IsLoopback() && r.Header.Get("X-Forwarded-For") == "" && r.Header.Get("Forwarded") == ""
}

// authenticate returns the call of a service that may do what the scope is for.
func (s *Server) authenticate(w http.ResponseWriter, r *http.Request, scope string) (*call, error) {
	if !secure(r) {
		if r.Header.Get("Authorization") == "" {
			return nil, errPlain
		}
		return nil, errInsecure
	}
	remote, err := net.ResolveTCPAddr("tcp", r.RemoteAddr)
	if err != nil {
		return nil, errNoKey
	}
	text, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	key, err := ParseKey(text)
	c := &call{Request: r, w: w, key: key.private(), remote: remote}
	if err == nil {
		c.service, c.border = s.find(idOf(c.key))
	}
	if c.service == nil {
		return nil, errNoKey // as often as one likes: nobody guesses 256 bits
	}
	if scope != "" && !c.service.May(scope, s.Wall()) {
		return nil, &Error{http.StatusForbidden, "scope", "this service does not have the scope " + scope}
	}
	c.author = s.authorOf(c.service)
	if !c.author.requests.Allow() {
		return nil, errRate
	}
	return c, nil
}

// find returns the service whose key has the id, if the key is valid now, and the border of the world.
func (s *Server) find(id player.ID) (v *policy.Service, border *place.Border) {
	s.Policy(func(p *policy.State) {
		now := s.Wall()
		v, border = p.Service(id), p.Settings().Border
		if v != nil && (v.Until != 0 && now.UnixMilli() >= v.Until || p.Judge(policy.Subject{Player: id, Name: v.Name}, now).Ban != nil) {
			v = nil
		}
	})
	return v, border
}

// contains reports whether the service may read or change all blocks of a box: of both corners, since area and border
// are rectangles.
func (c *call) contains(box grid.Box) bool {
	for _, corner := range []grid.Pos{box.Min, box.Max} {
		if !c.service.Area.Contains(corner) || !c.border.Contains(corner) || !corner.Chunk().Valid() {
			return false
		}
	}
	return true
}

// box returns the box that a request names; the service's area if it names none, and the service has one.
func (s *Server) box(c *call) (box grid.Box, err error) {
	switch text := c.URL.Query().Get("box"); {
	case text != "":
		if box, err = grid.ParseBox(text); err != nil {
			return box, badRequest("%v", err)
		}
	case c.service.Area != nil:
		a := c.service.Area
		box = grid.Box{Min: grid.Pos{X: a.MinX, Z: a.MinZ}, Max: grid.Pos{X: a.MaxX, Y: grid.MaxHeight, Z: a.MaxZ}}
	default:
		return box, badRequest("name a box: X1,Z1:X2,Z2 or X1,Y1,Z1:X2,Y2,Z2")
	}
	box.Min.Y, box.Max.Y = max(box.Min.Y, 0), min(box.Max.Y, s.World.Height()-1)
	if box.Min.Y > box.Max.Y {
		return box, badRequest("the box is above or below the world, which has the heights 0 to %d", s.World.Height()-1)
	}
	if !c.contains(box) {
		return box, errOutside
	}
	return box, nil
}

// number returns a parameter of a request: from 0 to most, and the usual one if the request has none.
func (c *call) number(name string, usual, most int64) (int64, error) {
	text := c.URL.Query().Get(name)
	if text == "" {
		return usual, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 || n > most {
		return 0, badRequest("%s=%q: want a whole number from 0 to %d", name, text, most)
	}
	return n, nil
}

// reading begins to read land or history, after those that others read. The caller must call end.
func (s *Server) reading(ctx context.Context, asks bool) (end func(), err error) {
	if err := s.reads.Acquire(ctx, 1); err != nil {
		return nil, errBusy
	}
	end = func() { s.reads.Release(1) }
	if asks && s.questions.Wait(ctx) != nil {
		end()
		return nil, errBusy
	}
	return end, nil
}

// decode reads the body of a request: one JSON value, without fields that are not known.
func decode[T any](c *call) (value T, err error) {
	d := json.NewDecoder(http.MaxBytesReader(c.w, c.Body, maxBody))
	d.DisallowUnknownFields()
	err = d.Decode(&value)
	if err == nil {
		if _, more := d.Token(); !errors.Is(more, io.EOF) {
			err = errors.New("something follows the JSON value")
		}
	}
	if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
		return value, &Error{http.StatusRequestEntityTooLarge, "too_large", fmt.Sprintf("the body has more than %d bytes", maxBody)}
	}
	if err != nil {
		return value, badRequest("the body is not what is wanted: %v", err)
	}
	return value, nil
}

// authorOf returns what this node knows of a service.
func (s *Server) authorOf(v *policy.Service) *author {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.mu.authors[v.ID]
	if a == nil {
		s.Policy(func(p *policy.State) {
			for id := range s.mu.authors {
				if p.Service(id) == nil {
					delete(s.mu.authors, id)
				}
			}
		})
		a = newAuthor()
		s.mu.authors[v.ID] = a
	}
	limit := rate.Limit(blocksPerSecond)
	if v.Rate > 0 {
		limit = rate.Limit(v.Rate)
	}
	if a.blocks.Limit() != limit {
		a.blocks.SetLimit(limit)
	}
	return a
}
