package main

import (
	"fmt"
	"log/slog"

	"github.com/voxelpopuli/voxeld/kv"
	"github.com/voxelpopuli/voxeld/region"
	"github.com/voxelpopuli/voxeld/store"
	"github.com/voxelpopuli/voxeld/world"
)

// hintTables hold what the network tells again: their damaged rows are deleted.
var hintTables = map[string]bool{"dht": true, "peers": true, "published": true, "players": true, "bases": true, "regions": true}

// judgeDamage says what follows from rows that were found damaged when the database was opened: the regions that they
// may be of are suspect, hints are deleted, and without the rest the node cannot be.
func judgeDamage(all []store.Damage, db *store.DB, logger *slog.Logger) (suspects map[uint64]string, err error) {
	suspects = make(map[uint64]string)
	for _, d := range all {
		logger.Error("damaged row in the database", "table", d.Table, "key", fmt.Sprintf("%x", d.Keys[0]))
		groups, ofGroups := region.Concerned(d.Table, d.Keys)
		switch {
		case ofGroups:
			for _, id := range groups {
				if id == world.CatalogID {
					return nil, refuseDamage(d)
				}
				suspects[id] = fmt.Sprintf("%v, or a row beside it, was damaged when the database was opened", d)
			}
		case hintTables[d.Table]:
			if err := db.Commit([]kv.Write{{Table: d.Table, Key: d.Keys[0]}}); err != nil {
				return nil, fmt.Errorf("delete damaged row: %w", err)
			}
		default:
			return nil, refuseDamage(d)
		}
	}
	return suspects, nil
}

func refuseDamage(d store.Damage) error {
	return fmt.Errorf("%v: %w; keep a copy of the data directory, and put a backup in its place; or, if other nodes keep "+
		"this world, begin with an empty one and --join: they bring everything that they have", d, store.ErrDamaged)
}
