package live

import "sync"

// tasks are the goroutines that do the driver's work. Unlike a WaitGroup it can be closed
// while others still want to begin something.
type tasks struct {
	mu      sync.Mutex
	running int
	idle    chan struct{} // not nil once it is closed; itself closed when nothing runs
}

// Go runs work beside the caller, and returns false when nothing begins any more.
func (t *tasks) Go(work func()) bool {
	if !t.begin() {
		return false
	}
	go func() {
		defer t.done()
		work()
	}()
	return true
}

// Do is Go without a goroutine: it returns once the work has ended.
func (t *tasks) Do(work func()) bool {
	if !t.begin() {
		return false
	}
	defer t.done()
	work()
	return true
}

func (t *tasks) begin() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.idle != nil {
		return false
	}
	t.running++
	return true
}

func (t *tasks) done() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.running--; t.running == 0 && t.idle != nil {
		close(t.idle)
	}
}

// close has nothing begin any more. The channel is closed once all that runs has ended.
func (t *tasks) close() <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.idle == nil {
		t.idle = make(chan struct{})
		if t.running == 0 {
			close(t.idle)
		}
	}
	return t.idle
}
