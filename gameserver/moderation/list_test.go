package moderation

import (
	"strings"
	"testing"

	"github.com/voxelpopuli/voxeld/policy"
)

// Help has a line for each group of commands, and explains the commands of a group, or one.
func TestHelpLines(t *testing.T) {
	for topic, want := range map[string][]string{
		"":        {"talk: /help /who ", "move: /spawn ", "build: /inspect ", "land: /register ", "/help GROUP explains"},
		"no such": {"There is no command or group no such that you may use"},
		"ban":     {"There is no command or group ban that you may use"},
		"claims":  {"/claims [PLAYER] – list your claims"},
		"Move":    {"/spawn – go back", "/home – ", "/sethome – ", "/warp NAME – ", "/warps – ", "/time – ", "/visit X Y Z – "},
		"/trust":  {"/trust CLAIM PLAYER – let a player build in your claim, and enter it"},
	} {
		lines := helpLines(policy.For(policy.Builder), topic)
		var texts []string
		for _, line := range lines {
			texts = append(texts, line.Text)
		}
		ok := topic == "" || len(texts) == len(want)
		for _, begin := range want {
			found := false
			for _, text := range texts {
				found = found || strings.HasPrefix(text, begin)
			}
			ok = ok && found
		}
		if !ok || strings.Contains(strings.Join(texts, " "), "/ban") {
			t.Errorf("/help %s: %q, want %q", topic, texts, want)
		}
	}
}
