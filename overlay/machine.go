package overlay

// Input is what a machine is handed in a round.
type Input struct {
	Round    uint32 // grows by 1 with each step
	At       Point  // of the own avatar
	Velocity Point  // blocks a round
	Body     uint64 // see Update
	Inbox    []Message
}

// Self is the own update of this round.
func (in *Input) Self(id ID) Update {
	return Update{Origin: id, Round: in.Round, At: in.At, Velocity: in.Velocity, Body: in.Body}
}

// Output is what a machine says in a round. Its owner may use it again after Reset.
type Output struct {
	Messages []Message // to send
	Learned  []Update  // what the game learns: for each origin only what is newer than what it learned before
}

// Reset empties both lists and keeps their memory.
func (o *Output) Reset() { o.Messages, o.Learned = o.Messages[:0], o.Learned[:0] }

// Send adds a message.
func (o *Output) Send(m Message) { o.Messages = append(o.Messages, m) }

// Machine tells others of one avatar, and its owner of others.
type Machine interface {
	// ID is the avatar's.
	ID() ID
	// Introduce names avatars that exist, with what is known of them: at least one for a newcomer, unless it is the
	// first. A machine that lost everybody may be introduced again.
	Introduce(contacts []Update)
	// Step does one round: it takes in the inbox, in its order, and appends to out. The machine keeps nothing of the
	// inbox's slice and nothing of out; payloads it may keep.
	Step(in *Input, out *Output)
}
