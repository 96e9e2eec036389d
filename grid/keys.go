package grid

// maxKeys bounds the entries of a Keys, of about 150 bytes each: the founded cells of 256 domains.
const maxKeys = 1 << 12

// Keys caches the keys of cells, so that each is searched for once. The zero Keys is not usable: see NewKeys.
// It belongs to one goroutine.
type Keys struct {
	placement Placement
	keys      map[Cell]string // at most maxKeys
}

// NewKeys returns an empty cache for a placement, which must be one of the constants.
func NewKeys(p Placement) *Keys {
	return &Keys{placement: p, keys: make(map[Cell]string)}
}

// Key returns the cell's DHT key, as Placement.Key does.
func (k *Keys) Key(c Cell) string {
	if key, known := k.keys[c]; known {
		return key
	}
	if len(k.keys) >= maxKeys {
		for old := range k.keys { // any one: the choice affects only how long a later call takes
			delete(k.keys, old)
			break
		}
	}
	key := k.placement.Key(c)
	k.keys[c] = key
	return key
}

// Check returns the same as Placement.Check, faster for cached cells.
func (k *Keys) Check(key string) error { return k.placement.check(key, k.Key) }
