package main

import (
	"fmt"
	"log/slog"

	"github.com/voxelpopuli/voxeld/internal/kv"
	"github.com/voxelpopuli/voxeld/region"
	"github.com/voxelpopuli/voxeld/region/integrity"
	"github.com/voxelpopuli/voxeld/store"
	"github.com/voxelpopuli/voxeld/world"
)

// hintTables are the tables whose content the network provides again. Damaged rows in them are deleted.
var hintTables = map[string]bool{"dht": true, "peers": true, "published": true, "players": true, "player_bases": true, "bases": true, "contents": true, "regions": true, integrity.IncarnationsTable: true}

// classifyDamage handles the rows that were found damaged when the database was opened. It returns the regions that may
// be affected, with the reason, and deletes hints. Any other damaged row is an error: the node cannot run without it.
func classifyDamage(all []store.CorruptRow, db *store.DB, logger *slog.Logger) (suspects map[uint64]string, err error) {
	suspects = make(map[uint64]string)
	for _, d := range all {
		logger.Error("damaged row in the database", "table", d.Table, "key", fmt.Sprintf("%x", d.Keys[0]))
		groups, ofGroups := region.Concerned(d.Table, d.Keys)
		switch {
		case ofGroups:
			for _, id := range groups {
				if id == world.CatalogID {
					return nil, damageError(d)
				}
				suspects[id] = fmt.Sprintf("%v, or a row beside it, was damaged when the database was opened", d)
			}
		case hintTables[d.Table]:
			if err := db.Commit([]kv.Write{{Table: d.Table, Key: d.Keys[0]}}); err != nil {
				return nil, fmt.Errorf("delete damaged row: %w", err)
			}
		default:
			return nil, damageError(d)
		}
	}
	return suspects, nil
}

func damageError(d store.CorruptRow) error {
	return fmt.Errorf("%v: %w; keep a copy of the data directory. If other nodes hold this world, start a new node, which gets what they have: "+
		"voxeld run --data-dir EMPTY --join TOKEN (voxeld invite prints the token there). If not, restore a backup: "+
		"voxeld restore FILE --data-dir EMPTY", d, kv.ErrDamaged)
}
