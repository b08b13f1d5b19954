package release

import (
	"sync"
	"testing"
)

// People ask for what was left while the manager begins anew.
func TestBeginWhilePeopleAsk(t *testing.T) {
	var m Manager
	var asks sync.WaitGroup
	asks.Go(func() {
		for range 20000 {
			m.Left("web")
		}
	})
	for range 20000 {
		m.Begin()
	}
	asks.Wait()
}
