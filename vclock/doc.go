// Package vclock holds pruned vector clocks: they order events between players, with clocks whose size depends on the
// number of players in sight (Weis, Wacker, Schuster, Holzapfel, "Towards Logical Clocks in
// P2P-based MMVEs", 2009; sections below are that paper's).
//
//   - Clock is a dictionary-based vector clock (Definition 2), and Supremum is Algorithm 1.
//   - Owner is the clock of one player: Act counts the player's events, Hear merges those of others.
//   - Stamp is attached to an event: its author, and the author's clock at that moment.
//   - Compare orders two stamps. History.Compare also follows chains of stamps, and is the one to use.
//   - Queue holds received events until their predecessors have arrived, and shows them in causal order.
//   - Stamp.Append and DecodeStamp are the codec.
//
// # Relations
//
// Compare has four outcomes, Before, After, Equal and Concurrent. Algorithm 2 is given for < and the text says that
// "all other relations (>,||,=,<=,>=)" follow.
//
// # What pruning costs
//
// A vector with fewer entries than there are players cannot show all of causality (Charron-Bost, Information Processing
// Letters 39(1), 1991): every method to shrink clocks fails for some histories. §3.3 says that pruning keeps <, >, <=,
// >= and =, and only makes some concurrent pairs ordered. That is too optimistic. Strictly less means "no component
// greater, one smaller". If the smaller component is pruned, the result is "=". And a component that is pruned on one
// side only counts as 0 there, which turns "<" into "||" or, with another one, into ">".
//
// Compare therefore uses only what pruning cannot falsify: whether the other event's clock contains this event. It may
// report Concurrent for two events of which one follows the other (its author was pruned on the way), but it never
// reverses an order, and never orders two concurrent events. research/measured.md has the figures.
//
// # Deviations
//
//   - Compare is not Algorithm 2, which fails the paper's own seven-step example for one of the two players who compare
//     (research/clocks has it).
//   - A clock's owner is always relevant.
//   - If more players are relevant than a clock may hold, it keeps those heard most recently (Owner.Limit).
//   - Hear does not increment the owner's own component, but Act does, as in the example of §3.2.
//
// Everything is a value or belongs to the goroutine that owns the player's session. The package is floor 0: it imports
// nothing of voxeld, and wire, overlay and everything above may import it.
package vclock
