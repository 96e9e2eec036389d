// Package vclock holds pruned vector clocks: which of two events between players came first, with clocks that stay as
// small as the crowd a player sees (DESIGN §8; Weis, Wacker, Schuster, Holzapfel, "Towards Logical Clocks in P2P-based
// MMVEs", 2009; sections below are that paper's).
//
//   - Clock is a dictionary-based vector clock (Definition 2), and Supremum is Algorithm 1.
//   - Owner is the clock of one player: it acts, and it hears what others did.
//   - Stamp is what an event carries: who did it, and the owner's clock at that moment.
//   - Compare says how two stamps stand, History.Compare what follows from chains of them as well, and is the one to use.
//     Algorithm2 is the paper's comparison as printed.
//   - Line is where a receiver holds events until those that they follow are there, and shows them in causal order.
//   - Stamp.Append and DecodeStamp are the bytes that travel.
//
// # Relations
//
// Compare has four outcomes, Before, After, Equal and Concurrent; with BeforeOrEqual and AfterOrEqual these are the paper's
// six: < > = || <= >=. Algorithm 2 is given for < and the text says that "all other relations (>,||,=,<=,>=)" follow.
//
// # What pruning costs
//
// A vector with fewer entries than there are players cannot show all of causality (Charron-Bost, Information Processing
// Letters 39(1), 1991): for every way to make clocks smaller there are histories in which it fails. §3.3 says that pruning
// keeps <, >, <=, >= and =, and only makes some concurrent pairs ordered. That is too kind. Strictly less is "no component
// greater, one smaller", and the one that is smaller may be among the pruned ones: what remains is "=". And a component that
// is pruned on one side alone counts as 0 there, which turns "<" into "||" or, with another one, around.
//
// Compare therefore looks only at what nobody can mistake: does the other event's clock hold this event? It may say
// Concurrent of two events of which one follows the other (its author was pruned on the way), but never that an event comes
// before one that it follows, and never orders two that are concurrent. docs/causality.md has the figures.
//
// # Deviations
//
//   - Compare is not Algorithm 2, which fails the paper's own seven-step example for one of the two players who look.
//   - A clock's owner is always relevant to himself.
//   - Where more players are relevant than a clock may hold, those remain whom its owner heard last (Owner.Limit).
//   - Hearing an event does not raise the hearer's own component; acting does, as in the example of §3.2.
//
// Everything is a value or belongs to the goroutine that owns the player's session. The package is floor 0: it imports
// nothing of voxeld, and wire, overlay and everything above may import it.
package vclock
