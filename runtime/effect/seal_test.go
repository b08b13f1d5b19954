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

// An object that is made anew with the signature of one that has gone, since that was read a moment before, counts: the
// last one that was made does, and no other, as long as a copy may have been made in time.
func TestTheLastObjectOfASignatureCounts(t *testing.T) {
	now := time.Unix(1e9, 0)
	s := NewSeal(func() time.Time { return now })
	s.Use([]byte("key"), time.Time{})
	ref := Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: "a", Name: "x"}
	signature := s.Sign(ref, "", "claim")
	object := func(uid string) map[string]any {
		return map[string]any{"metadata": map[string]any{
			"uid": uid, "creationTimestamp": now.UTC().Format(time.RFC3339), "annotations": map[string]any{MadeBySignature: signature},
		}}
	}
	one, two := object("1"), object("2")
	for i, made := range []map[string]any{one, two} {
		s.Made(made)
		if is := s.Signs(signature, ref, one, "claim"); is != (i == 0) {
			t.Errorf("the first object counts: %t, after %d", is, i+1)
		}
	}
	if !s.Signs(signature, ref, two, "claim") {
		t.Error("the second object does not count")
	}
	now = now.Add(time.Hour)
	if !s.Signs(signature, ref, one, "claim") {
		t.Error("an object that another process has made anew counts never again")
	}
}
