package main

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net"
	"strconv"
	"strings"
	"testing"

	"github.com/voxelpopuli/voxeld/motion"
	"github.com/voxelpopuli/voxeld/test/testkit/sessionclient"
	"github.com/voxelpopuli/voxeld/wire/sessionmsg"
)

// joinFrom joins as the owner of a key, over a trusted proxy on loopback that names the player's address.
func joinFrom(t *testing.T, d *daemon, address, name string) *tester {
	t.Helper()
	seed := sha256.Sum256([]byte(address + name))
	key := ed25519.NewKeyFromSeed(seed[:])
	conn, err := net.Dial("tcp", d.Game)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	fmt.Fprintf(conn, "PROXY TCP4 %s 192.0.2.1 77 4002\r\n", address)
	c := sessionclient.New(conn)
	if _, err := c.Join(sessionmsg.Join{Name: name, View: 1, Encoding: sessionmsg.EncodingJSON, Key: hex.EncodeToString(key.Public().(ed25519.PublicKey))}); err != nil {
		t.Fatal(err)
	}
	p := &tester{
		Player: sessionclient.NewPlayer(c), t: t, key: key,
		Avatars: make(map[string]motion.Pose), Acks: make(map[uint64]sessionmsg.Ack), names: make(map[string]string),
	}
	p.until("a welcome", func() bool { return p.Welcome.Player != "" })
	return p
}

// Somebody with one address registers names and claims land as fast as they can, at one gateway: they get the quota of
// their address, are told what to do, and keep nobody else from it. An operator raises the quota of a range.
func TestOneAddressDoesNotFillTheWorld(t *testing.T) {
	t.Parallel()
	d := startAt(t, takeAddress(t), nil, "--trusted-proxy", "127.0.0.1", "--joins-per-address", "1000")
	const attacker = "203.0.113.9"
	const most = 30
	names, claims, refused := 0, 0, ""
	for i := range most {
		p := joinFrom(t, d, attacker, "squat"+strconv.Itoa(i))
		switch got := p.command("register"); {
		case strings.HasPrefix(got, "The name"):
			names++
		default:
			refused = got
		}
		for j := range 3 {
			at := 1000*i + 100*j
			if strings.HasPrefix(p.command(fmt.Sprintf("claim %d,0 %d,9", at, at+9)), "The claim") {
				claims++
			}
		}
		p.leave()
	}
	t.Logf("%d players of one address have %d names and %d claims", most, names, claims)
	if names != 20 || claims != 20 || !strings.Contains(refused, "ask an operator to raise the quota of your address (set quota)") {
		t.Errorf("%d names and %d claims, and then: %s", names, claims, refused)
	}
	if got := joinFrom(t, d, "203.0.114.9", "ann").command("register"); !strings.HasPrefix(got, "The name") {
		t.Errorf("a player of another address: %s", got)
	}
	d.operate("set", "quota", "203.0.113.0/24", "100", "100")
	if got := joinFrom(t, d, attacker, "pupil").command("register"); !strings.HasPrefix(got, "The name") {
		t.Errorf("after the quota is raised: %s", got)
	}
	for _, limit := range []string{"names", "claims"} {
		if n := d.metric("voxeld_address_limits_total", "limit", limit); n == 0 {
			t.Errorf("no %s are counted as refused", limit)
		}
	}
}

// A name that waits for a moderator is the player's once one approves it: they are told so.
func TestNamesWaitForApproval(t *testing.T) {
	t.Parallel()
	d := startDaemon(t)
	d.operate("set", "approval", "names", "on")
	ada := joinWithKey(t, d.Game, "ada", "ada's key")
	eve := joinWithKey(t, d.Game, "eve", "eve's key")
	for p, want := range map[*tester]string{ada: "Your request for the name ada waits", eve: "Your request for the name eve waits"} {
		if got := p.command("register"); !strings.HasPrefix(got, want) {
			t.Error(got)
		}
	}
	if got := eve.command("requests"); !strings.HasSuffix(got, "eve wants the name eve") {
		t.Errorf("eve is shown %q", got)
	}
	number := func(of *tester) string {
		line := of.command("requests")
		return line[:strings.Index(line, ":")]
	}
	told := func(p *tester, text string) {
		t.Helper()
		p.until(text, func() bool { return len(p.Notices) > 0 && p.Notices[len(p.Notices)-1] == text })
	}
	d.operate("approve", number(ada))
	told(ada, "Your request for the name ada is approved.")
	d.operate("deny", number(eve))
	told(eve, "Your request for the name eve is denied.")
	if ada.Permissions.Name != "ada" || eve.Permissions.Name != "" {
		t.Errorf("registered names: %q, %q", ada.Permissions.Name, eve.Permissions.Name)
	}
}
