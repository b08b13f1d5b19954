package lane

// Queued is something that waits for its run.
type Queued struct {
	ID ID
	// Seq tells apart what waits now from what has waited under the same ID
	// before.
	Seq int
}

// Queue returns what waits, that included which waits for its next try, but not what
// has failed for good. The order is not defined.
func (l *Lane[E]) Queue() []Queued {
	var out []Queued
	for name, g := range l.groups {
		for key, it := range g.items {
			if len(it.events) > 0 && !it.awaitsChange {
				out = append(out, Queued{ID: ID{Group: name, Key: key}, Seq: it.seq})
			}
		}
	}
	for _, w := range l.asks {
		out = append(out, Queued{ID: w.ID})
	}
	return out
}
