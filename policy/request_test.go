package policy

import (
	"fmt"
	"strings"
	"testing"
)

func TestApproval(t *testing.T) {
	s := newTown(t)
	s.check(
		[3]string{"", "set approval names maybe", "! usage: /set approval names|claims on|off"},
		[3]string{"", "set approval names on", "New names wait for a moderator."},
		[3]string{"", "set approval claims on", "New claims wait for a moderator."},
		[3]string{"zoe", "register", "Your request for the name zoe waits for a moderator. Its number is 1."},
		[3]string{"zoe", "register", "! Your request for the name zoe waits for a moderator. Its number is 1."},
		[3]string{"gus", "register", "Your request for the name gus waits for a moderator. Its number is 2."},
		[3]string{"ada", "claim 0,0 9,9 home", "Your request for the claim home, 0,0 to 9,9 waits for a moderator. Its number is 3."},
		[3]string{"bob", "claim 5,5 20,20 home", "Your request for the claim home, 5,5 to 20,20 waits for a moderator. Its number is 4."},
		[3]string{"mod", "claim 50,50 70,70 park", "The claim park is yours: 21 × 21 blocks. /trust park PLAYER lets others build in it."},
		[3]string{"ada", "approve 3", "! /approve is for the role moderator and above; yours is builder"},
		[3]string{"mod", "approve 9", "! there is no request 9: /requests lists them"},
		[3]string{"mod", "approve", "! usage: /approve NUMBER"},
		[3]string{"mod", "approve 1", "Request 1 of zoe is approved. The name zoe is theirs."},
		[3]string{"mod", "approve 1", "! there is no request 1: /requests lists them"},
		[3]string{"mod", "deny 2", "Request 2 of gus for the name gus is denied."},
		[3]string{"mod", "approve 3", "Request 3 of ada is approved. The claim ada/home is theirs."},
		[3]string{"mod", "approve 4", "! request 4 cannot be approved: a part of that is claimed: ada/home, from 0,0,0 to 9,1023,9; deny it"},
		[3]string{"mod", "deny 4", "Request 4 of bob for the claim home, 5,5 to 20,20 is denied."},
		[3]string{"", "set approval names off", "New names wait for nobody. Those that wait go on waiting: /requests lists them."},
		[3]string{"gus", "register", "The name gus is yours: nobody else can use it."},
	)
	if s.NameOf(idOf("zoe")) != "zoe" || len(s.Requests()) != 0 {
		t.Errorf("zoe is called %q; requests: %v", s.NameOf(idOf("zoe")), s.Requests())
	}
	if claims := s.claims.Of(idOf("ada")); len(claims) != 1 || claims[0].Number == 0 {
		t.Errorf("an approved claim has no number, so its owner could undo what is older: %+v", claims)
	}
}

// Requests are bounded, of a player and of all. They end as names do that are not used.
func TestRequestsAreBounded(t *testing.T) {
	s := newTown(t)
	s.say("", "set approval names on")
	s.say("", "set approval claims on")
	for i := range maxRequestsOfOne + 1 {
		got := s.say("ada", fmt.Sprintf("claim %d,0 %d,9", 100*i, 100*i+9))
		if refused := strings.HasPrefix(got, "!"); refused != (i == maxRequestsOfOne) {
			t.Errorf("request %d: %s", i, got)
		}
	}
	for i := range MaxRequests {
		s.say(fmt.Sprintf("p%d", i), "register")
	}
	if n := len(s.Requests()); n != MaxRequests {
		t.Errorf("%d requests wait", n)
	}
	if got := s.say("late", "register"); !strings.Contains(got, "no room for more: ask one to answer them") {
		t.Error(got)
	}
	s.say("", "expire")
	s.pass(31 * day)
	s.say("", "expire")
	if n := len(s.Requests()); n != 0 {
		t.Errorf("%d requests wait after a month", n)
	}
}
