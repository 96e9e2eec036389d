package overlay

// Input is a machine's input in a round.
type Input struct {
	Round    uint32 // increases by 1 with each step
	At       Point  // position of the machine's avatar
	Velocity Point  // blocks a round
	GameData uint64 // see Update
	Inbox    []Message
}

// Self returns the avatar's own update of this round.
func (in *Input) Self(id ID) Update {
	return Update{Origin: id, Round: in.Round, At: in.At, Velocity: in.Velocity, GameData: in.GameData}
}

// Output is a machine's output in a round. Its owner may use it again after Reset.
type Output struct {
	Messages []Message // to send
	Learned  []Update  // for the game: for each origin only updates newer than those delivered before
}

// Reset empties both lists and keeps their memory.
func (o *Output) Reset() { o.Messages, o.Learned = o.Messages[:0], o.Learned[:0] }

// Send adds a message.
func (o *Output) Send(m Message) { o.Messages = append(o.Messages, m) }

// Machine disseminates the movement of one avatar, and delivers that of others to its owner.
type Machine interface {
	// ID returns the id of the avatar.
	ID() ID
	// Introduce adds existing avatars with their last known updates: at least one for a newcomer, unless it is the
	// first. A machine without contacts may be introduced again.
	Introduce(contacts []Update)
	// Step runs one round: it processes the inbox in order and appends to out. The machine retains neither the inbox
	// slice nor out; it may retain payloads.
	Step(in *Input, out *Output)
}
