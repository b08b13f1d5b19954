package release

import (
	"sync"
	"testing"

	"k8s.io/client-go/rest"
)

// People ask for what was left while the manager begins anew.
func TestBeginWhilePeopleAsk(t *testing.T) {
	m, err := New(Options{Config: &rest.Config{Host: "http://sim"}})
	if err != nil {
		t.Fatal(err)
	}
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
