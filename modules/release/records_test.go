package release

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"github.com/rs/zerolog"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/starling-operator/starling/runtime/effect"
)

// recordsFixture keeps records in a fake API server that counts writes.
type recordsFixture struct {
	*Manager
	client *fake.Clientset
	// hold, when set, keeps writes from ending.
	hold chan struct{}
	mu   sync.Mutex
	sent int
	fail error
	end  context.CancelFunc
}

func newRecordsFixture(t *testing.T, objects ...runtime.Object) *recordsFixture {
	f := &recordsFixture{client: fake.NewClientset(objects...)}
	write := func(clienttesting.Action) (bool, runtime.Object, error) {
		f.mu.Lock()
		f.sent++
		hold, fail := f.hold, f.fail
		f.mu.Unlock()
		if hold != nil {
			<-hold
		}
		return fail != nil, nil, fail
	}
	f.client.PrependReactor("patch", "configmaps", write)
	f.client.PrependReactor("create", "configmaps", write)
	f.restart(t)
	return f
}

func (f *recordsFixture) restart(t *testing.T) {
	ctx, end := context.WithCancel(context.Background())
	t.Cleanup(end)
	f.end = end
	f.Manager = &Manager{o: Options{Log: zerolog.Nop()}}
	f.records = &records{stopped: ctx, core: f.client.CoreV1(), namespace: "ops", name: "starling-releases", instance: "ops.starling"}
}

func (f *recordsFixture) writes() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.sent
}

func (f *recordsFixture) installed(t *testing.T) []string {
	t.Helper()
	refs, err := f.Installed(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, r := range refs {
		names = append(names, r.Module+":"+r.Namespace+"/"+r.Name)
	}
	return names
}

func TestRecords(t *testing.T) {
	f := newRecordsFixture(t)
	web, db := Ref{"web", "web", "apps"}, Ref{"db", "pg", "data"}
	if got := f.installed(t); got != nil {
		t.Errorf("at first: %v", got)
	}
	for _, ref := range []Ref{web, db, web} {
		if err := f.records.set(t.Context(), record{Ref: ref}); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]string{"web:apps/web", "db:data/pg"}, f.installed(t)); diff != "" {
		t.Error(diff)
	}
	cm, err := f.client.CoreV1().ConfigMaps("ops").Get(t.Context(), "starling-releases", metav1.GetOptions{})
	if err != nil || cm.Labels[effect.InstanceLabel] != "ops.starling" {
		t.Errorf("labels %v, %v", cm.Labels, err)
	}
	writes := f.writes()
	f.restart(t)
	if err := f.records.set(t.Context(), record{Ref: web}); err != nil || f.writes() != writes {
		t.Errorf("a record that is there: %d writes, %v", f.writes()-writes, err)
	}
	for range 2 {
		if err := f.records.change(t.Context(), recordKey(web), nil); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]string{"db:data/pg"}, f.installed(t)); diff != "" || f.writes() != writes+1 {
		t.Errorf("%d writes %s", f.writes()-writes, diff)
	}
}

// Many modules record at once: while one write is under way the others gather.
func TestRecordsCoalesce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newRecordsFixture(t, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "starling-releases", Namespace: "ops"}})
		f.hold = make(chan struct{})
		var wg sync.WaitGroup
		for i := range 100 {
			wg.Go(func() {
				ref := Ref{Module: "m", Namespace: "apps", Name: "m" + strings.Repeat("x", i)}
				if err := f.records.set(t.Context(), record{Ref: ref}); err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		close(f.hold)
		wg.Wait()
		if n := f.writes(); n > 2 {
			t.Errorf("%d writes for 100 records, want 2 at most", n)
		}
		if n := len(f.installed(t)); n != 100 {
			t.Errorf("%d records", n)
		}
	})
}

func TestRecordsFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newRecordsFixture(t)
		f.fail = errors.New("no space")
		ref := Ref{"web", "web", "apps"}
		err := f.records.set(t.Context(), record{Ref: ref})
		if err == nil || err.Error() != "recording releases (ConfigMap starling-releases): no space" {
			t.Errorf("%v", err)
		}
		f.fail = nil
		if err := f.records.set(t.Context(), record{Ref: ref}); err != nil {
			t.Errorf("again: %v", err)
		}
		// A caller that gives up takes nobody with it.
		f.hold = make(chan struct{})
		ctx, cancel := context.WithCancel(t.Context())
		gone := make(chan error, 1)
		go func() { gone <- f.records.set(ctx, record{Ref: Ref{"a", "a", "apps"}}) }()
		synctest.Wait()
		cancel()
		if err := <-gone; !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
		close(f.hold)
		synctest.Wait()
		if diff := cmp.Diff([]string{"a:apps/a", "web:apps/web"}, f.installed(t)); diff != "" {
			t.Error(diff)
		}
	})
}

func TestRecordsUnreadable(t *testing.T) {
	f := newRecordsFixture(t, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "starling-releases", Namespace: "ops"},
		Data: map[string]string{
			"apps.web": `{"module":"web","name":"web","namespace":"apps"}`,
			"apps.bad": `{"module":"bad","name":"other","namespace":"apps"}`,
			"note":     "by hand",
		},
	})
	if diff := cmp.Diff([]string{"web:apps/web"}, f.installed(t)); diff != "" {
		t.Error(diff)
	}
}

// full has the API server refuse objects of more than 1 MiB, and returns the most that it has stored
// for one write.
func (f *recordsFixture) full() (most *int) {
	most = new(int)
	check := func(a clienttesting.Action) (bool, runtime.Object, error) {
		size := 0
		if p, is := a.(clienttesting.PatchAction); is {
			size = len(p.GetPatch())
			if there, err := f.client.Tracker().Get(a.GetResource(), "ops", p.GetName()); err == nil {
				size += there.(interface{ Size() int }).Size()
			}
		} else if c, is := a.(clienttesting.CreateAction); is {
			size = c.GetObject().(interface{ Size() int }).Size()
		}
		if size > 1<<20 {
			return true, nil, errors.New("etcdserver: request is too large")
		}
		*most = max(*most, size)
		return false, nil, nil
	}
	for _, verb := range []string{"patch", "create"} {
		for _, of := range []string{"configmaps", "secrets"} {
			f.client.PrependReactor(verb, of, check)
		}
	}
	return most
}

func longRecord(i, size int) record {
	return record{Ref: Ref{Module: fmt.Sprintf("m%d", i), Namespace: "apps", Name: fmt.Sprintf("m%d", i)}, Unknown: []string{strings.Repeat("x", size)}}
}

// Thousands of releases fit, a restart finds them all, and a change costs what its part of them costs.
func TestRecordsOfManyReleases(t *testing.T) {
	const n = 600 // more than one object takes
	old := map[string]string{}
	for i := range 200 { // as a version without Secrets has left them, more than one shard takes
		data, err := json.Marshal(longRecord(i, 2000))
		if err != nil {
			t.Fatal(err)
		}
		old[fmt.Sprintf("apps.m%d", i)] = string(data)
	}
	f := newRecordsFixture(t, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "starling-releases", Namespace: "ops"}, Data: old})
	f.full()
	var wg sync.WaitGroup
	for worker := range 8 {
		wg.Go(func() {
			for i := worker; i < n; i += 8 {
				if err := f.records.set(t.Context(), longRecord(i, 2001)); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	f.restart(t)
	if got := len(f.installed(t)); got != n {
		t.Errorf("%d records", got)
	}
	cm, err := f.client.CoreV1().ConfigMaps("ops").Get(t.Context(), "starling-releases", metav1.GetOptions{})
	if err != nil || len(cm.Data) != 200 {
		t.Errorf("%d of the records of before are where they were, %v", len(cm.Data), err)
	}
	most := f.full()
	for _, i := range []int{300, 500, n - 1} {
		if err := f.records.set(t.Context(), longRecord(i, 2002)); err != nil {
			t.Fatal(err)
		}
		if rec, err := f.records.get(t.Context(), longRecord(i, 0).Ref); err != nil || len(rec.Unknown[0]) != 2002 {
			t.Errorf("%v, %v", rec, err)
		}
	}
	if *most > 2*shardRoom {
		t.Errorf("one change has the API server store %d bytes", *most)
	}
	for worker := range 8 {
		wg.Go(func() {
			for i := worker; i < n; i += 8 {
				if err := f.records.change(t.Context(), recordKey(longRecord(i, 0).Ref), nil); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	if f.restart(t); len(f.installed(t)) != 0 {
		t.Error("records are left")
	}
}

// A record without a place is refused with the reason, and others go on.
func TestARecordThatIsTooLarge(t *testing.T) {
	f := newRecordsFixture(t)
	f.full()
	small := longRecord(1, 100)
	if err := f.records.set(t.Context(), small); err != nil {
		t.Fatal(err)
	}
	err := f.records.set(t.Context(), longRecord(2, 2<<20))
	if err == nil || !strings.HasPrefix(err.Error(), "recording a release: its record has 2048 KiB, for which Secret starling-releases-1 has no room") {
		t.Error(err)
	}
	if err := f.records.set(t.Context(), longRecord(3, 100)); err != nil {
		t.Error(err)
	}
	if err := f.records.set(t.Context(), longRecord(1, 2<<20)); err == nil {
		t.Error("a record grows past its home")
	}
	if diff := cmp.Diff([]string{"m1:apps/m1", "m3:apps/m3"}, f.installed(t)); diff != "" {
		t.Error(diff)
	}
}
