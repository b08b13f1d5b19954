package apply

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"helm.sh/helm/v3/pkg/releaseutil"
)

func TestInstallOrder(t *testing.T) {
	if !slices.Equal(installOrder, []string(releaseutil.InstallOrder)) {
		t.Errorf("Helm's order is another one: %q", releaseutil.InstallOrder)
	}
}

// Kinds come one after the other, wherever they stand; one object that fails holds up no other, unless its
// error ends the whole.
func TestOrder(t *testing.T) {
	kinds := []string{"Widget", "Deployment", "Gadget", "ConfigMap", "Deployment", "Namespace"}
	away := errors.New("nobody answers")
	for _, test := range []struct {
		back    bool
		fails   map[int]error
		want    []int
		refused int
		err     error
	}{
		{want: []int{5, 3, 1, 4, 2, 0}},
		{back: true, want: []int{0, 2, 1, 4, 3, 5}},
		{fails: map[int]error{1: errors.New("no"), 5: errors.New("no")}, want: []int{5, 3, 1, 4, 2, 0}, refused: 2},
		{fails: map[int]error{5: errors.New("no"), 3: away}, want: []int{5, 3}, refused: 1, err: away},
	} {
		var mu sync.Mutex
		var got []int
		o := Order{Width: 1, Back: test.back, Ends: func(err error) bool { return err == away }}
		refused, err := o.Each(len(kinds), func(i int) string { return kinds[i] }, func(i int) error {
			mu.Lock()
			defer mu.Unlock()
			got = append(got, i)
			return test.fails[i]
		})
		if !slices.Equal(got, test.want) || len(refused) != test.refused || err != test.err {
			t.Errorf("back %t: %v, %v, %v", test.back, got, refused, err)
		}
	}
	if got := fmt.Sprint(Joined([]error{away, away, away, away, away, away, away})); got != "nobody answers; nobody answers; nobody answers; nobody answers; nobody answers; and 2 more" {
		t.Error(got)
	}
}
