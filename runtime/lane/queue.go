package lane

// Queued is one key that waits for its run.
type Queued struct {
	Key string
	// Seq tells apart what waits now from what has waited under the same key
	// before.
	Seq int
}

// Queue returns the keys that wait, those included that wait for their next try, but
// not those that have failed for good. The order is not defined.
func (l *Lane[E]) Queue() []Queued {
	var out []Queued
	for key, it := range l.items {
		if len(it.events) > 0 && !it.parked {
			out = append(out, Queued{Key: key, Seq: it.seq})
		}
	}
	return out
}
