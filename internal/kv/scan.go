package kv

import "bytes"

// Scanner reads tables; see store.DB.
type Scanner interface {
	Scan(table string, prefix []byte, visit func(key, value []byte) error) error
}

// ScanFrom is Scan without the keys below from. It calls s.ScanFrom if s has that method, as store.DB does.
func ScanFrom(s Scanner, table string, prefix, from []byte, visit func(key, value []byte) error) error {
	type seeker interface {
		ScanFrom(table string, prefix, from []byte, visit func(key, value []byte) error) error
	}
	if direct, ok := s.(seeker); ok {
		return direct.ScanFrom(table, prefix, from, visit)
	}
	return s.Scan(table, prefix, func(key, value []byte) error {
		if bytes.Compare(key, from) < 0 {
			return nil
		}
		return visit(key, value)
	})
}
