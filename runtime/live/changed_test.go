package live

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// An upgrade costs requests for the objects that the chart changes, and for those that others have changed.
func TestAnUpgradeCostsWhatItChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		files := maps.Clone(driftTree)
		for i := range 200 {
			files[fmt.Sprintf("web/templates/more%d.yaml", i)] = fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: more%d}\ndata: {text: ours}\n", i)
		}
		var mu sync.Mutex
		var asked []string
		f := newFixture(t, files, func(f *fixture) {
			f.before = func(r *http.Request) int {
				mu.Lock()
				defer mu.Unlock()
				if !strings.Contains(r.URL.Path, "/leases/") && r.URL.Query().Get("watch") == "" {
					asked = append(asked, r.Method+" "+r.URL.Path)
				}
				return 0
			}
		})
		f.start()
		f.waitReady()
		time.Sleep(time.Minute)
		requests := func(change func()) []string {
			mu.Lock()
			asked = nil
			mu.Unlock()
			change()
			time.Sleep(time.Minute)
			mu.Lock()
			defer mu.Unlock()
			return asked
		}
		next := maps.Clone(files)
		next["web/templates/more7.yaml"] = strings.ReplaceAll(files["web/templates/more7.yaml"], "ours", "new")
		got := requests(func() { f.reload(next) })
		if f.text("more7") != "new" {
			t.Error("the object is as it was")
		}
		maps := slices.DeleteFunc(slices.Clone(got), func(r string) bool { return !strings.Contains(r, "/namespaces/shop/configmaps") })
		if want := []string{"GET /api/v1/namespaces/shop/configmaps/more7", "PATCH /api/v1/namespaces/shop/configmaps/more7"}; !slices.Equal(maps, want) {
			t.Errorf("requests for objects are %q", maps)
		}
		if len(got) > 9 {
			t.Errorf("%d requests: %q", len(got), got)
		}

		// Objects that others change at the same moment are put right, by the upgrade or after it.
		last := f.text("more8")
		f.edit("more8", "theirs")
		f.remove("more9")
		requests(func() { f.reload(files) })
		if f.text("more7") != "ours" || f.text("more8") != last || f.text("more9") != "ours" {
			t.Errorf("they have %q, %q, %q", f.text("more7"), f.text("more8"), f.text("more9"))
		}
		f.stop()
		if err := <-f.ended; err != nil {
			t.Error(err)
		}
	})
}
