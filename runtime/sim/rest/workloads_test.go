package rest_test

import (
	"encoding/json"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/starling-operator/starling/runtime/sim/rest"
	"github.com/starling-operator/starling/runtime/sim/store"
	"github.com/starling-operator/starling/runtime/sim/workloads"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// A workloadWorld is one in which controllers work. Cases of testdata/workloads are written
// as those of testdata/parity, with two requests more: REST waits until nothing changes any
// more, and "SHOW path field,field" shows these fields of the objects of a list, in an order
// that does not depend on their names. Of all else but GET only the code counts. A case shows
// no field for which the real controllers have two answers: after a Recreate the condition
// Progressing depends on whether the Deployment controller saw the old Pods go or gone. In an
// update it depends on whether the controller saw its new ReplicaSet before or after the Pods
// of that: both count as ReplicaSetUpdated. The cases are recorded from the real controller
// manager:
//
//	go test -tags e2e ./runtime/sim/rest -run TestWorkloadsReal -update
type workloadWorld interface {
	parityWorld
	rest(t *testing.T, ns string)
}

// runWorkloads runs all cases in a world, side by side if that can bear it, and compares what
// it shows with what was recorded, or records it.
func runWorkloads(t *testing.T, w workloadWorld, sideBySide, record bool) {
	files, err := filepath.Glob("testdata/workloads/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	for _, file := range files {
		cases := readParity(t, file)
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			if sideBySide {
				t.Parallel()
			}
			for i := range cases {
				t.Run(cases[i].name, func(t *testing.T) {
					ns := w.namespace(t)
					if sideBySide {
						t.Parallel()
					}
					runWorkload(t, w, &cases[i], ns, record)
				})
			}
		})
		if record && !t.Failed() {
			writeParity(t, file, cases)
		}
	}
}

func runWorkload(t *testing.T, w workloadWorld, c *parityCase, ns string, record bool) {
	for i := range c.steps {
		s := &c.steps[i]
		f := strings.Fields(filled(s.request, ns, nil))
		got := ""
		switch f[0] {
		case "REST":
			w.rest(t, ns)
			got = "at rest"
		case "SHOW":
			for range 40 { // real controllers on a busy machine pause for longer than a world counts as rest
				_, _, body := w.do(t, "GET", f[1], "application/json", nil)
				got = shown(t, body, strings.Split(f[2], ","), ns)
				if record || strings.TrimSpace(got) == strings.TrimSpace(s.answer) {
					break
				}
				w.rest(t, ns)
			}
		default:
			typ := ""
			if len(f) > 2 {
				typ = f[2]
			}
			contentType, body := parityBody(t, typ, filled(s.body, ns, nil))
			code, _, answer := w.do(t, f[0], f[1], contentType, body)
			if got = strconv.Itoa(code); code >= 300 {
				got += "\n" + normal(t, answer, ns)
			}
		}
		if record {
			s.answer = got
			continue
		}
		if diff := cmp.Diff(strings.TrimSpace(s.answer), strings.TrimSpace(got)); diff != "" {
			t.Errorf("step %d, %s (-recorded +got):\n%s", i+1, s.request, diff)
		}
	}
}

var (
	minutes    = regexp.MustCompile(`-\d{8}\b`)
	hashes     = regexp.MustCompile(`\b[bcdfghjklmnpqrstvwxz2456789]{8,10}\b`)
	suffixes   = regexp.MustCompile(`-[bcdfghjklmnpqrstvwxz2456789]{5}\b`)
	containers = regexp.MustCompile(`(fake|simulated)://`)
	created    = regexp.MustCompile(`Created new replica set "([^"]*)"(\s+)reason: NewReplicaSetCreated`)
)

// shown writes fields of the objects of a list.
func shown(t *testing.T, body []byte, fields []string, ns string) string {
	var list struct {
		Items []map[string]any `json:"items"`
	}
	if err := json.Unmarshal(body, &list); err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	var out []string
	for _, obj := range list.Items {
		view := map[string]any{}
		for _, field := range fields {
			var at any = obj
			for _, key := range strings.Split(field, ".") {
				m, _ := at.(map[string]any)
				at = m[key]
			}
			if at != nil {
				view[field] = at
			}
		}
		text, err := yaml.Marshal(steady(view, "", ns))
		if err != nil {
			t.Fatal(err)
		}
		one := hashes.ReplaceAllString(string(text), "HASH")
		one = minutes.ReplaceAllString(one, "-MINUTES")
		one = suffixes.ReplaceAllString(one, "-NAME")
		one = created.ReplaceAllString(one, `ReplicaSet "$1" is progressing.${2}reason: ReplicaSetUpdated`)
		out = append(out, containers.ReplaceAllString(one, "RUNTIME://"))
	}
	slices.Sort(out)
	return strings.Join(out, "---\n")
}

// TestWorkloadsSimulated gives the cases to the controllers of package workloads.
func TestWorkloadsSimulated(t *testing.T) {
	if *update {
		t.Skip("recording what the real controllers do")
	}
	runWorkloads(t, newMovingWorld(t), false, false)
}

// movingWorld is a simulated world in which workloads move.
type movingWorld struct {
	parityWorld
	store *store.Store
	mover *workloads.Mover
	ahead time.Duration // of the clock of this machine
}

func newMovingWorld(t *testing.T) *movingWorld {
	w := &movingWorld{}
	now := func() time.Time { return time.Now().Add(w.ahead) }
	w.store = store.New(store.Options{Builtins: store.NewBuiltins(), Now: now, MakeNamespaces: true})
	w.mover = &workloads.Mover{Store: w.store, Now: now, Warn: func(text string) { t.Log(text) }}
	// As the devcluster has it.
	node := map[string]any{"metadata": map[string]any{"name": "fake-0", "labels": map[string]any{"kubernetes.io/hostname": "fake-0", "type": "fake"}}}
	if _, err := w.store.Create(store.Target{GVR: schema.GroupVersionResource{Version: "v1", Resource: "nodes"}}, node, store.WriteOptions{Manager: "parity"}); err != nil {
		t.Fatal(err)
	}
	n := 0
	w.parityWorld = &transportWorld{
		transport: rest.New(rest.Options{Store: w.store}), host: "http://sim", patience: time.Minute,
		spaces: func(*testing.T) string { n++; return "workloads-" + strconv.Itoa(n) },
	}
	return w
}

// rest waits as the real world does: some seconds without a change.
func (w *movingWorld) rest(t *testing.T, _ string) {
	for range 5000 {
		if w.store.Settle() || w.mover.Move() {
			continue
		}
		next := w.mover.Next()
		if next.IsZero() || next.After(w.mover.Now().Add(quietTime)) {
			return
		}
		w.ahead += next.Sub(w.mover.Now())
	}
	t.Fatal("it does not settle")
}

// quietTime is how long nothing changes in a world at rest.
const quietTime = 3 * time.Second
