package sessionmsg

// Messages about roles and commands (package policy).

// Command is a command without its slash: 1 to 256 bytes, as a Chat. Commands that change the world's policy are signed with the player's key
// (policy.SignedText); Seq then grows from command to command: microseconds since 1970.
type Command struct {
	Text      string `json:"text"`
	Seq       uint64 `json:"seq,omitempty"`
	Signature string `json:"signature,omitempty"` // in hex
}

// Standing is the player's role, their registered name, and the commands that they may use. It follows the Welcome, and is sent again when it
// changes.
type Standing struct {
	Role     string        `json:"role"`
	Name     string        `json:"name"`     // that is registered to the player's key, or empty
	Commands []CommandHelp `json:"commands"` // that they may use
}

// CommandHelp describes a command.
type CommandHelp struct {
	Name  string `json:"name"`
	Usage string `json:"usage,omitempty"` // its arguments
	Help  string `json:"help"`
}

func (Command) clientType() string { return "command" }

func (Standing) serverType() string { return "standing" }
