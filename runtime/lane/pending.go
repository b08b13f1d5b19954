package lane

// Pending returns the events that wait for an ID. They must not be changed.
func (l *Lane[E]) Pending(id ID) []E {
	if _, it := l.find(id); it != nil {
		return it.events
	}
	return nil
}
