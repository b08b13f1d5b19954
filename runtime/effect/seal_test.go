package effect

import (
	"testing"
	"time"
)

// A process that takes the Lease over makes the key while a list without it is still under way.
func TestAKeyIsNotLostToAnEarlierList(t *testing.T) {
	s := NewSeal(time.Now)
	s.None()
	s.Use([]byte("key"), time.Time{})
	if s.None(); !s.Ready() {
		t.Error("the key is lost")
	}
}
