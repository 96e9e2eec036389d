package main

import (
	"context"
	"crypto/rand"
	"encoding/base32"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/voxelpopuli/voxeld/cmd/voxeld/internal/admin"
	"github.com/voxelpopuli/voxeld/gameserver"
	gamemoderation "github.com/voxelpopuli/voxeld/gameserver/moderation"
	"github.com/voxelpopuli/voxeld/player"
	"github.com/voxelpopuli/voxeld/policy"
	"github.com/voxelpopuli/voxeld/policy/sanction"
	"github.com/voxelpopuli/voxeld/region/policysync"
	"github.com/voxelpopuli/voxeld/wire"
	"github.com/voxelpopuli/voxeld/wire/nodemsg"
)

// moderateTime bounds a command of the operator. It is shorter than the timeout of admin.Post.
const moderateTime = 8 * time.Second

// moderation holds the handlers of commands that concern players.
type moderation struct {
	people  *policysync.Copy
	gateway *gameserver.Gateway
}

func (m moderation) add(mux *http.ServeMux) {
	mux.HandleFunc("POST /policy", m.answerCommand)
	mux.HandleFunc("POST /policy/owner", m.answerOwner)
	mux.HandleFunc("GET /policy/bans", m.answerBans)
	mux.HandleFunc("GET /policy/roles", m.answerRoles)
	mux.HandleFunc("GET /policy/claims", m.answerClaims)
	mux.HandleFunc("GET /policy/services", m.answerServices)
	mux.HandleFunc("GET /policy/audit", m.answerAudit)
}

func (m moderation) answerCommand(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), moderateTime)
	defer cancel()
	command := r.URL.Query().Get("text")
	warning, err := gamemoderation.Absent(ctx, command, m.gateway.Elsewhere)
	if err != nil {
		replyText(w, "", err)
		return
	}
	text, err := m.people.Operate(ctx, m.withID(command))
	replyText(w, strings.TrimSpace(text+"\n"+warning.Text), err)
}

func replyText(w http.ResponseWriter, text string, err error) {
	answer := admin.Text{Text: text}
	if err != nil {
		answer.Error = wire.ErrorText(err)
	}
	reply(w, answer)
}

// withID replaces the name in a command by the player's id, if a player with a key uses it here and nobody has
// registered it: they could come back with another name.
func (m moderation) withID(text string) string {
	words := strings.Fields(text)
	if len(words) < 2 || !slices.Contains([]string{"ban", "pardon", "kick", "mute", "unmute", "role"}, words[0]) {
		return text
	}
	registered := false
	m.people.Read(func(p *policy.State) { _, registered = p.OwnerOf(words[1]) })
	for _, online := range m.gateway.Online() {
		if id, err := player.ParseID(online.ID); err == nil && !registered && !online.Guest && strings.EqualFold(online.Name, words[1]) {
			words[1] = id.String()
			return strings.Join(words, " ")
		}
	}
	return text
}

func (m moderation) answerOwner(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), moderateTime)
	defer cancel()
	token, err := newOwnerToken(ctx, m.people)
	replyText(w, token, err)
}

// firstToken returns a token for /owner in a new world, empty if there is none yet.
func (m moderation) firstToken(ctx context.Context, logger *slog.Logger) string {
	ctx, cancel := context.WithTimeout(ctx, moderateTime)
	defer cancel()
	token, err := newOwnerToken(ctx, m.people)
	if err != nil {
		logger.Warn("the world has no owner yet: voxeld owner prints a token for one", "error", err)
	}
	return token
}

// newOwnerToken returns a token with which one player becomes an owner of the world.
func newOwnerToken(ctx context.Context, people *policysync.Copy) (string, error) {
	var secret [10]byte
	rand.Read(secret[:])
	text := base32.StdEncoding.EncodeToString(secret[:])
	token := text[:4] + "-" + text[4:8] + "-" + text[8:12] + "-" + text[12:]
	_, err := people.Operate(ctx, "token "+policy.TokenHash(token))
	if err != nil {
		return "", fmt.Errorf("make a token for /owner: %w", err)
	}
	return token, nil
}

func (m moderation) answerBans(w http.ResponseWriter, _ *http.Request) {
	var all []sanction.Sanction
	m.people.Read(func(p *policy.State) { all = p.Sanctions(m.people.Now()) })
	reply(w, all)
}

func (m moderation) answerRoles(w http.ResponseWriter, _ *http.Request) {
	var answer admin.Roles
	m.people.Read(func(p *policy.State) {
		answer = admin.Roles{Members: p.Roles().Members(), Defined: p.Roles().Defined(), Settings: p.Settings()}
	})
	reply(w, answer)
}

func (m moderation) answerClaims(w http.ResponseWriter, _ *http.Request) {
	var all []policy.ListedClaim
	m.people.Read(func(p *policy.State) { all = p.ListClaims() })
	reply(w, all)
}

func (m moderation) answerServices(w http.ResponseWriter, _ *http.Request) {
	var all []*policy.Service
	m.people.Read(func(p *policy.State) { all = p.Services() })
	reply(w, all)
}

func (m moderation) answerAudit(w http.ResponseWriter, r *http.Request) {
	most, err := strconv.Atoi(r.URL.Query().Get("last"))
	if err != nil || most < 1 {
		http.Error(w, "last: want a number of commands", http.StatusBadRequest)
		return
	}
	all := []admin.AuditEntry{}
	err = m.people.Audit(uint64(most), func(number uint64, act nodemsg.Act) error {
		entry := admin.AuditEntry{Number: number, At: time.UnixMilli(act.At).UTC(), By: act.Name, Key: fmt.Sprintf("%x", act.Key), Command: act.Text}
		if word, _, _ := strings.Cut(act.Text, " "); word == "owner" || word == "token" {
			entry.Command = word + " …" // a secret, or its hash
		}
		all = append(all, entry)
		return r.Context().Err()
	})
	if err != nil {
		replyError(w, err)
		return
	}
	reply(w, all)
}

func replyError(w http.ResponseWriter, err error) {
	if !errors.Is(err, context.Canceled) {
		http.Error(w, wire.ErrorText(err), http.StatusInternalServerError)
	}
}
