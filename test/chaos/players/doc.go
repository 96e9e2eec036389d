// Package players is the load of a run of package chaos: players who edit, and readers who compare what gateways show.
// They write down in a history.Ledger what they asked for and received.
package players
