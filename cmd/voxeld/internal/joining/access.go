package joining

import (
	"cmp"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/google/renameio/v2"

	"github.com/voxelpopuli/voxeld/cmd/voxeld/internal/admin"
	"github.com/voxelpopuli/voxeld/dht/admission"
	"github.com/voxelpopuli/voxeld/internal/config"
	"github.com/voxelpopuli/voxeld/region"
	"github.com/voxelpopuli/voxeld/trust"
	"github.com/voxelpopuli/voxeld/wire"
)

// Access gives out tokens and revokes nodes, for operators.
type Access struct {
	Node  *Node
	Gate  *admission.Gate // nil if the world is open
	World string          // its id
}

// Invite returns a token for nodes that are admitted as the invitation says.
func (a Access) Invite(i trust.Invitation, life time.Duration) (config.Token, error) {
	token := config.Token{World: a.World, Addrs: a.Node.Host.Addrs()}
	if a.Gate == nil {
		return token, nil
	}
	secret, err := a.Gate.Invite(i, life)
	token.Secret = &secret
	return token, err
}

// fileLife is how long a token in a file can be used. It is replaced when half of that is over, at the next start.
const fileLife = 365 * 24 * time.Hour

// WriteToken writes a token for any number of nodes to a file. If the file has one that is good for some time, only its
// addresses change.
func (a Access) WriteToken(path string) error {
	token := config.Token{World: a.World, Addrs: a.Node.Host.Addrs()}
	if a.Gate != nil {
		if token.Secret = a.goodToken(path); token.Secret == nil {
			var err error
			if token, err = a.Invite(trust.Invitation{Operator: founder}, fileLife); err != nil {
				return fmt.Errorf("write token file: %w", err)
			}
		}
	}
	if err := renameio.WriteFile(path, []byte(token.String()+"\n"), 0o600, renameio.IgnoreUmask()); err != nil {
		return fmt.Errorf("write token file: %w", err)
	}
	return nil
}

// CheckTokenFile returns an error if the file holds a token: a node that is about to create a world would replace it,
// and the nodes that use it would not start again. An empty path is no file.
func CheckTokenFile(path string) error {
	text, err := os.ReadFile(path)
	if path == "" || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read token file: %w; choose another one with --token-file", err)
	}
	token, err := config.ParseToken(string(text))
	if err != nil {
		return nil //nolint:nilerr // nobody can use what is there
	}
	return fmt.Errorf("token file %s is of world %s, of which this node has no data: put its data directory back, or a backup with voxeld restore; "+
		"or start it without --token-file, and with --join and a token that voxeld invite prints on another node, to become a new node of that world; "+
		"or remove the file to create a new world", path, token.World[:min(12, len(token.World))])
}

// goodToken returns the secret of the token in a file, if this node admits others with it for some time.
func (a Access) goodToken(path string) *trust.Secret {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	old, err := config.ParseToken(string(text))
	if err != nil || old.World != a.World || old.Secret == nil || !a.Gate.Invites(old.Secret.ID(), a.Node.Now().Add(fileLife/2)) {
		return nil
	}
	return old.Secret
}

// Status returns the part of the node's status that concerns admission.
func (a Access) Status() admin.Access {
	if a.Gate == nil {
		return admin.Access{Open: true}
	}
	charter := a.Gate.Charter()
	answer := admin.Access{Issuer: a.Gate.Issues(a.Node.Host.PeerID())}
	for _, issuer := range charter.Issuers {
		if id, err := admission.PeerOf(issuer.Key); err == nil && !a.Gate.Excluded(id.String()) {
			answer.Issuers++
		}
	}
	root, err := a.Node.rootKey()
	answer.RootKey = err == nil && slices.Contains(charter.Roots, root.Key())
	if err := a.Excluded(); err != nil {
		answer.Error = wire.ErrorText(err)
	} else if own, err := a.Gate.Own(); err != nil {
		answer.Error = "this node is not admitted: " + wire.ErrorText(err)
	} else {
		answer.Expires, answer.RenewAt = own.Expires(), own.RenewAt()
	}
	return answer
}

// Excluded returns an error that says by whom this node is excluded from the world, and why, as far as it knows; nil if
// it is not.
func (a Access) Excluded() error {
	if a.Gate == nil {
		return nil
	}
	e, excluded := a.Gate.Exclusion(a.Node.Host.PeerID())
	if !excluded {
		return nil
	}
	text := fmt.Sprintf("this node is excluded from the world: %s %s was revoked on %s by %s",
		kinds[e.Kind], subjectText(e.Revocation), time.UnixMilli(e.At).UTC().Format(time.RFC3339), a.signer(e))
	if e.Reason != "" {
		text += ": " + e.Reason
	}
	return errors.New(text)
}

// signer names who has signed a revocation.
func (a Access) signer(e trust.Exclusion) string {
	if slices.Contains(a.Gate.Charter().Roots, e.By) {
		return "root key"
	}
	id, err := admission.PeerOf(e.By)
	if err != nil {
		return "an issuer"
	}
	return id.String()
}

// notes lists what may become a problem: about issuers and the root key.
func (a Access) notes(s admin.Access, nodes int) (all []string) {
	if s.Issuers == 1 && nodes > 1 {
		all = append(all, "only one node gives out tokens and renews certificates: without it, those of the others end within 20 to 30 days; "+
			"voxeld peers appoint NODE, on the node that has root.key")
	}
	if s.Issuer && !s.RootKey {
		all = append(all, "root.key is not in this node's data directory: only where it is are issuers appointed and dismissed; know where your copy is")
	}
	return all
}

// Examine adds to an examination of the world what concerns this node's certificate.
func (a Access) Examine(health region.Health) admin.Doctor {
	d := admin.Doctor{Health: health, Access: a.Status()}
	d.Findings = slices.DeleteFunc(d.Findings, func(f region.Finding) bool { return f.Kind == "contradicted" && !a.Admitted(f.Subject) }) // it is out
	what := d.Access.Error
	if i := slices.IndexFunc(d.Findings, func(f region.Finding) bool { return f.Kind == "excluded" }); i >= 0 && what != "" {
		d.Findings[i].What, what = what, "" // the rest of the examination knows only that it is
	}
	if left := d.Access.Expires.Sub(a.Node.Now()); d.Access.Error == "" && !d.Access.Open && left < lateRenewal {
		what = fmt.Sprintf("this node's certificate ends in %v, and could not be renewed", left.Round(time.Hour))
	}
	if what != "" {
		d.Findings = append(d.Findings, region.Finding{
			Kind: "certificate", Subject: "node", What: what,
			Do: "see that a node that voxeld peers lists as issuer runs and can be reached; or restart this one with --join and a new token",
		})
	}
	if a.Gate == nil {
		return d
	}
	d.Notes = a.notes(d.Access, d.Nodes)
	if c := a.Gate.LastContrary(); !c.At.IsZero() && a.Node.Now().Sub(c.At) < contraryFor {
		d.Findings = append(d.Findings, region.Finding{
			Kind: "charter", Subject: c.Peer, What: fmt.Sprintf("another node names other root keys or issuers than this one knows, signed with a root key: %v", c.Err),
			Do: "if one of the two nodes is right, restart the other one with --join and a new token of the former; if neither holder of the root key knows of it, replace the root key (voxeld peers replace-root)",
		})
	}
	return d
}

// contraryFor is how long an examination names a charter that was refused.
const contraryFor = 24 * time.Hour

// lateRenewal is how long a certificate is valid that should have been renewed long ago.
const lateRenewal = 7 * 24 * time.Hour

// Admitted reports whether a connected node may take part in the world.
func (a Access) Admitted(node string) bool {
	if a.Gate == nil {
		return true
	}
	_, admitted := a.Gate.Certificate(node)
	return admitted
}

// Describe adds to a peer what its certificate says.
func (a Access) Describe(p *admin.Peer) {
	if a.Gate == nil {
		return
	}
	p.Issuer, p.Excluded = a.Gate.Issues(p.Peer), a.Gate.Excluded(p.Peer)
	if c, admitted := a.Gate.Certificate(p.Peer); admitted {
		p.Operator, p.Expires, p.Token = c.Operator, c.Expires(), c.Token.String()
	}
}

// Add adds the handlers to the admin socket. The regions are those of this node.
func (a Access) Add(mux *http.ServeMux, regions *region.Host) {
	mux.HandleFunc("POST /invite", a.answerInvite)
	mux.HandleFunc("GET /invitations", a.answerInvitations)
	mux.HandleFunc("POST /peers/revoke", func(w http.ResponseWriter, r *http.Request) { a.answerRevoke(w, r, regions) })
	mux.HandleFunc("POST /peers/forget", func(w http.ResponseWriter, r *http.Request) { a.answerForget(w, r, regions) })
	mux.HandleFunc("POST /peers/close", a.answerClose)
	mux.HandleFunc("POST /peers/appoint", a.change(a.appoint))
	mux.HandleFunc("POST /peers/dismiss", a.change(a.dismiss))
	mux.HandleFunc("POST /peers/replace-root", a.change(func(string) error { return replaceRootKey(a.Node.DataDir, a.Gate) }))
	mux.HandleFunc("GET /peers/revoked", a.answerRevoked)
}

func (a Access) answerInvitations(w http.ResponseWriter, _ *http.Request) {
	all := []admin.Invitation{}
	if a.Gate != nil {
		open, err := a.Gate.Invitations()
		if err != nil {
			http.Error(w, wire.ErrorText(err), http.StatusInternalServerError)
			return
		}
		for _, i := range open {
			all = append(all, admin.Invitation{
				Token: i.Token.String(), Operator: i.Operator, Expires: time.Unix(i.NotAfter, 0), Uses: i.Uses, Used: len(i.Nodes), Issuer: i.Issuer,
			})
		}
	}
	reply(w, all)
}

func (a Access) answerInvite(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	uses, usesErr := strconv.Atoi(cmp.Or(q.Get("uses"), "1"))
	life, lifeErr := time.ParseDuration(cmp.Or(q.Get("expires"), "24h"))
	issuer, issuerErr := strconv.ParseBool(cmp.Or(q.Get("issuer"), "false"))
	if err := errors.Join(usesErr, lifeErr, issuerErr); err != nil {
		http.Error(w, wire.ErrorText(err), http.StatusBadRequest)
		return
	}
	token, err := a.Invite(trust.Invitation{Operator: cmp.Or(q.Get("operator"), founder), Uses: uses, Issuer: issuer}, life)
	if err != nil {
		reply(w, admin.Invite{Error: wire.ErrorText(err)})
		return
	}
	reply(w, admin.Invite{Token: token.String()})
}

var errOpen = errors.New("the world is open: anybody may run nodes of it, and none can be revoked")

func (a Access) answerRevoke(w http.ResponseWriter, r *http.Request, regions *region.Host) {
	var answer admin.AccessChange
	if err := a.revoke(r, regions); err != nil {
		answer.Error = wire.ErrorText(err)
	}
	reply(w, answer)
}

func (a Access) revoke(r *http.Request, regions *region.Host) error {
	if a.Gate == nil {
		return errOpen
	}
	s, err := subject(r.FormValue("kind"), r.FormValue("subject"))
	if err != nil {
		return err
	}
	lift := r.FormValue("lift") == "true"
	if !lift && r.FormValue("force") != "true" {
		if err := a.spares(r.Context(), regions, s); err != nil {
			return err
		}
	}
	return a.Gate.Revoke(s, cmp.Or(r.FormValue("reason"), "by an operator"), lift)
}

// costTime bounds how long it is found out what a revocation costs. It is shorter than the timeout of admin.Post.
const costTime = 7 * time.Second

// spares returns an error if regions would lose their majority with the nodes that a revocation excludes.
func (a Access) spares(ctx context.Context, regions *region.Host, s trust.Subject) error {
	ctx, cancel := context.WithTimeout(ctx, costTime)
	defer cancel()
	cost, err := regions.Examiner.Cost(ctx, func(peer string) bool { return a.Gate.Concerns(s, peer) })
	if err != nil {
		return fmt.Errorf("it is not known which regions would lose the majority of their members: %w; --force revokes all the same", err)
	}
	if len(cost.Majority) == 0 {
		return nil
	}
	return fmt.Errorf("without the nodes that this excludes, most of the members of %s would be gone: nothing could be changed there until "+
		"voxeld region recover. First start members that are down, or add nodes and wait for voxeld status --wait healthy; --force revokes all the same",
		region.NamesOf(cost.Majority))
}

func (a Access) answerForget(w http.ResponseWriter, r *http.Request, regions *region.Host) {
	var answer admin.Forgotten
	err := a.mayForget(r.FormValue("node"))
	if err == nil {
		answer.Regions, answer.Missed, err = regions.Forget(r.Context(), r.FormValue("node"))
	}
	if err != nil {
		answer.Error = wire.ErrorText(err)
	}
	reply(w, answer)
}

// mayForget returns an error if that is no node's id, or this node may not have others forget one.
func (a Access) mayForget(node string) error {
	if _, err := admission.KeyOfNode(node); err != nil {
		return err
	}
	if a.Gate != nil && !a.Gate.Issues(a.Node.Host.PeerID()) {
		return errors.New("this node gives out no tokens: run the command on one that does (voxeld peers lists them as issuers)")
	}
	return nil
}

// change answers with the result of a change of who decides who may run nodes.
func (a Access) change(do func(node string) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var answer admin.AccessChange
		err := errOpen
		if a.Gate != nil {
			err = do(r.FormValue("node"))
		}
		if err != nil {
			answer.Error = wire.ErrorText(err)
		}
		reply(w, answer)
	}
}

func (a Access) appoint(node string) error {
	key, err := admission.KeyOfNode(node)
	if err != nil {
		return err
	}
	c, admitted := a.Gate.Certificate(node)
	if !admitted {
		return fmt.Errorf("%s is not connected: start it, and try again", node)
	}
	return a.Gate.AppointOther(key, c.Operator)
}

func (a Access) dismiss(node string) error {
	key, err := admission.KeyOfNode(node)
	if err != nil {
		return err
	}
	return a.Gate.Dismiss(key)
}

func (a Access) answerClose(w http.ResponseWriter, _ *http.Request) {
	var answer admin.AccessChange
	if err := a.close(); err != nil {
		answer.Error = wire.ErrorText(err)
	}
	reply(w, answer)
}

// close gives an open world a root key.
func (a Access) close() error {
	if a.Gate != nil {
		return errors.New("the world is not open")
	}
	root, err := CreateRootKey(a.Node.DataDir)
	if err != nil {
		return err
	}
	return admission.Close(a.Node.Storage, []trust.Key{root.Key()})
}

// subject returns whom an operator names.
func subject(kind, name string) (trust.Subject, error) {
	switch kind {
	case admin.RevokeNode:
		key, err := admission.KeyOfNode(name)
		return trust.NodeSubject(key), err
	case admin.RevokeOperator:
		return trust.OperatorSubject(name), nil
	case admin.RevokeToken:
		if raw, err := hex.DecodeString(name); err == nil && len(raw) == len(trust.TokenID{}) {
			return trust.TokenSubject(trust.TokenID(raw)), nil
		}
		token, err := config.ParseToken(name)
		if err == nil && token.Secret == nil {
			err = errors.New("the token has no secret")
		}
		if err != nil {
			return trust.Subject{}, err
		}
		return trust.TokenSubject(token.Secret.ID()), nil
	}
	return trust.Subject{}, fmt.Errorf("revoke %q: want node, operator or token", kind)
}

func (a Access) answerRevoked(w http.ResponseWriter, _ *http.Request) {
	all := []admin.Revocation{}
	if a.Gate != nil {
		for _, r := range a.Gate.Revoked() {
			all = append(all, admin.Revocation{Kind: kinds[r.Kind], Subject: subjectText(r.Revocation), At: time.UnixMilli(r.At), Reason: r.Reason, By: a.signer(r)})
		}
	}
	slices.SortFunc(all, func(a, b admin.Revocation) int { return a.At.Compare(b.At) })
	reply(w, all)
}

var kinds = map[trust.Kind]string{
	trust.RevokeNode: admin.RevokeNode, trust.RevokeOperator: admin.RevokeOperator, trust.RevokeToken: admin.RevokeToken,
}

func subjectText(r trust.Revocation) string {
	switch r.Kind {
	case trust.RevokeNode:
		if id, err := admission.PeerOf(trust.Key(r.Subject)); err == nil {
			return id.String()
		}
	case trust.RevokeOperator:
		return string(r.Subject)
	case trust.RevokeToken:
	}
	return hex.EncodeToString(r.Subject)
}

// reply writes an answer as JSON.
func reply(w http.ResponseWriter, answer any) {
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(answer) //nolint:errcheck,errchkjson // the client left
}
