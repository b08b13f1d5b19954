package release

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"github.com/rs/zerolog"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/starling-operator/starling/runtime/cluster"
	"github.com/starling-operator/starling/runtime/effect"
	simrest "github.com/starling-operator/starling/runtime/sim/rest"
	"github.com/starling-operator/starling/runtime/sim/store"
)

// recordsFixture keeps records in a simulated API server that counts writes.
type recordsFixture struct {
	*Manager
	t      *testing.T
	server http.RoundTripper

	mu sync.Mutex
	// hold, when set, keeps writes from ending.
	hold chan struct{}
	sent int
	// fail is in the path of the writes that are refused.
	fail string
}

func newRecordsFixture(t *testing.T) *recordsFixture {
	f := &recordsFixture{t: t, server: simrest.New(simrest.Options{Store: store.New(store.Options{Builtins: store.NewBuiltins(), MakeNamespaces: true})})}
	f.restart()
	return f
}

func (f *recordsFixture) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodGet {
		return f.server.RoundTrip(r)
	}
	f.mu.Lock()
	f.sent++
	hold, fail := f.hold, f.fail
	f.mu.Unlock()
	if hold != nil {
		<-hold
	}
	if fail != "" && strings.Contains(r.URL.Path, fail) {
		const status = `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"no space","reason":"Forbidden","code":403}`
		header := http.Header{"Content-Type": []string{"application/json"}}
		return &http.Response{StatusCode: http.StatusForbidden, Header: header, Body: io.NopCloser(strings.NewReader(status)), Request: r}, nil
	}
	return f.server.RoundTrip(r)
}

func (f *recordsFixture) restart() {
	f.t.Helper()
	client, err := cluster.New(cluster.Options{Config: &rest.Config{Host: "http://sim", Transport: f}, QPS: -1, Log: zerolog.Nop()})
	if err != nil {
		f.t.Fatal(err)
	}
	config := rest.CopyConfig(client.Config())
	config.ContentType, config.AcceptContentTypes = "application/json", "application/json"
	f.Manager, err = New(Options{
		Client: client, Config: config, Discovery: client.Discovery(), Mapper: client.Mapper(),
		Instance: "ops.starling", Namespace: "ops", Name: "starling", Log: zerolog.Nop(),
	})
	if err != nil {
		f.t.Fatal(err)
	}
}

func (f *recordsFixture) writes() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.sent
}

func (f *recordsFixture) installed() []string {
	f.t.Helper()
	refs, err := f.Installed(f.t.Context())
	if err != nil {
		f.t.Fatal(err)
	}
	var names []string
	for _, r := range refs {
		names = append(names, r.Module+":"+r.Namespace+"/"+r.Name)
	}
	return names
}

// before is what an earlier version has left in the ConfigMap.
func (f *recordsFixture) before(data map[string]string) {
	f.t.Helper()
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "starling-releases", Namespace: "ops"}, Data: data}
	if _, err := f.core.ConfigMaps("ops").Create(f.t.Context(), cm, metav1.CreateOptions{}); err != nil {
		f.t.Fatal(err)
	}
}

// inConfigMap is how many records are there still.
func (f *recordsFixture) inConfigMap() int {
	f.t.Helper()
	cm, err := f.core.ConfigMaps("ops").Get(f.t.Context(), "starling-releases", metav1.GetOptions{})
	if err != nil {
		f.t.Fatal(err)
	}
	return len(cm.Data)
}

func TestRecords(t *testing.T) {
	f := newRecordsFixture(t)
	web, db := Ref{"web", "web", "apps"}, Ref{"db", "pg", "data"}
	if got := f.installed(); got != nil {
		t.Errorf("at first: %v", got)
	}
	for _, ref := range []Ref{web, db, web} {
		if err := f.records.set(t.Context(), record{Ref: ref}); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]string{"web:apps/web", "db:data/pg"}, f.installed()); diff != "" {
		t.Error(diff)
	}
	list, err := f.core.Secrets("ops").List(t.Context(), metav1.ListOptions{})
	if err != nil || len(list.Items) != 1 || list.Items[0].Name != "starling-releases-1" || list.Items[0].Labels[effect.InstanceLabel] != "ops.starling" {
		t.Errorf("kept in %v, %v", list.Items, err)
	}
	writes := f.writes()
	f.restart()
	if err := f.records.set(t.Context(), record{Ref: web}); err != nil || f.writes() != writes {
		t.Errorf("a record that is there: %d writes, %v", f.writes()-writes, err)
	}
	for range 2 {
		if err := f.records.change(t.Context(), recordKey(web), nil); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]string{"db:data/pg"}, f.installed()); diff != "" || f.writes() != writes+1 {
		t.Errorf("%d writes %s", f.writes()-writes, diff)
	}
}

// Many modules record at once: while one write is under way the others gather.
func TestRecordsCoalesce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newRecordsFixture(t)
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
		if n := len(f.installed()); n != 100 {
			t.Errorf("%d records", n)
		}
	})
}

func TestRecordsFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newRecordsFixture(t)
		f.fail = "/secrets"
		ref := Ref{"web", "web", "apps"}
		err := f.records.set(t.Context(), record{Ref: ref})
		if err == nil || !strings.HasPrefix(err.Error(), "recording releases (Secrets starling-releases-…): ") || !strings.Contains(err.Error(), "no space") {
			t.Errorf("%v", err)
		}
		f.fail = ""
		if err := f.records.set(t.Context(), record{Ref: ref}); err != nil {
			t.Errorf("again: %v", err)
		}
		// A caller that gives up takes nobody with it, whether it writes or waits.
		for _, gives := range []int{0, 1} {
			f.hold = make(chan struct{})
			ended := []chan error{make(chan error, 1), make(chan error, 1), make(chan error, 1)}
			var give context.CancelFunc
			for i, end := range ended {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if i == gives {
					give = cancel
				}
				name := fmt.Sprintf("a%d%d", gives, i)
				go func() { end <- f.records.set(ctx, record{Ref: Ref{name, name, "apps"}}) }()
				synctest.Wait()
			}
			give()
			if gives == 0 {
				close(f.hold)
			}
			if err := <-ended[gives]; gives == 1 && !errors.Is(err, context.Canceled) {
				t.Errorf("%v", err)
			}
			if gives == 1 {
				close(f.hold)
			}
			for i, end := range ended {
				if i == gives {
					continue
				}
				if err := <-end; err != nil {
					t.Error(err)
				}
			}
		}
		if got := strings.Join(f.installed(), " "); !strings.Contains(got, "a01:") || !strings.Contains(got, "a02:") || !strings.Contains(got, "a10:") || !strings.Contains(got, "a12:") {
			t.Error(got)
		}
	})
}

func TestRecordsUnreadable(t *testing.T) {
	f := newRecordsFixture(t)
	f.before(map[string]string{
		"apps.web": `{"module":"web","name":"web","namespace":"apps"}`,
		"apps.bad": `{"module":"bad","name":"other","namespace":"apps"}`,
		"note":     "by hand",
	})
	_, err := f.core.Secrets("ops").Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "starling-releases-1", Namespace: "ops", Labels: map[string]string{effect.InstanceLabel: "ops.starling", recordLabel: "ops.starling"}},
		Type:       recordLabel, Data: map[string][]byte{"my_note": []byte("by hand"), "apps.api": []byte(`{"module":"api","name":"api","namespace":"apps"}`)},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"api:apps/api", "web:apps/web"}, f.installed()); diff != "" {
		t.Error(diff)
	}
	if err := f.records.set(t.Context(), longRecord(2, 2)); err != nil {
		t.Error(err)
	}
	secret, err := f.core.Secrets("ops").Get(t.Context(), "starling-releases-1", metav1.GetOptions{})
	if err != nil || string(secret.Data["my_note"]) != "by hand" || len(secret.Data) != 6 {
		t.Errorf("%v, %v", secret, err)
	}
}

// Records of versions that had a ConfigMap first move with the first write. Nothing is lost where a process ends before
// it has emptied that, and what is newer counts.
func TestRecordsOfAConfigMapMove(t *testing.T) {
	f := newRecordsFixture(t)
	text := func(r record) string { data, _ := json.Marshal(r); return string(data) }
	f.before(map[string]string{"apps.m1": text(longRecord(1, 1)), "apps.m2": text(longRecord(2, 1))})
	_, err := f.core.Secrets("ops").Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "starling-releases-1", Namespace: "ops", Labels: map[string]string{effect.InstanceLabel: "ops.starling", recordLabel: "ops.starling"}},
		Type:       recordLabel, Data: map[string][]byte{"apps.m3": []byte(text(longRecord(3, 1)))},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	writes := f.writes()
	all := []string{"m1:apps/m1", "m2:apps/m2", "m3:apps/m3"}
	if diff := cmp.Diff(all, f.installed()); diff != "" || f.writes() != writes {
		t.Errorf("%d writes, %s", f.writes()-writes, diff)
	}
	for _, fail := range []string{"/secrets", "/configmaps"} {
		f.fail = fail
		if err := f.records.set(t.Context(), longRecord(2, 2)); err == nil || f.inConfigMap() != 2 {
			t.Errorf("without %s: %v, %d records are where they were", fail, err, f.inConfigMap())
		}
		f.restart()
		if diff := cmp.Diff(all, f.installed()); diff != "" {
			t.Error(diff)
		}
	}
	if rec, err := f.records.get(t.Context(), longRecord(2, 0).Ref); err != nil || len(rec.Unknown[0]) != 2 {
		t.Errorf("the older one counts: %v, %v", rec, err)
	}
	f.fail = ""
	if err := f.records.set(t.Context(), longRecord(1, 2)); err != nil || f.inConfigMap() != 0 {
		t.Errorf("%v, %d records are where they were", err, f.inConfigMap())
	}
	f.restart()
	if diff := cmp.Diff(all, f.installed()); diff != "" {
		t.Error(diff)
	}
}

// All that is known is written anew where somebody has deleted or changed the Secret.
func TestRecordsThatSomebodyDeletes(t *testing.T) {
	f := newRecordsFixture(t)
	for i := range 3 {
		switch i {
		case 1:
			if err := f.core.Secrets("ops").Delete(t.Context(), "starling-releases-1", metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
		case 2:
			s, err := f.core.Secrets("ops").Get(t.Context(), "starling-releases-1", metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			delete(s.Data, "apps.m0")
			if _, err := f.core.Secrets("ops").Update(t.Context(), s, metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		if err := f.records.set(t.Context(), longRecord(i, 1)); err != nil {
			t.Fatal(err)
		}
	}
	f.restart()
	if diff := cmp.Diff([]string{"m0:apps/m0", "m1:apps/m1", "m2:apps/m2"}, f.installed()); diff != "" {
		t.Error(diff)
	}
}

func longRecord(i, size int) record {
	return record{Ref: Ref{Module: fmt.Sprintf("m%d", i), Namespace: "apps", Name: fmt.Sprintf("m%d", i)}, Unknown: []string{strings.Repeat("x", size)}}
}

// Thousands of releases fit, a restart finds them all, and a change costs what its part of them costs.
func TestRecordsOfManyReleases(t *testing.T) {
	const n = 600 // more than one object takes
	f := newRecordsFixture(t)
	all := func(do func(i int) error) {
		var wg sync.WaitGroup
		for worker := range 8 {
			wg.Go(func() {
				for i := worker; i < n; i += 8 {
					if err := do(i); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		wg.Wait()
		f.restart()
	}
	all(func(i int) error { return f.records.set(t.Context(), longRecord(i, 2001)) })
	if got := len(f.installed()); got != n {
		t.Errorf("%d records", got)
	}
	list, err := f.core.Secrets("ops").List(t.Context(), metav1.ListOptions{})
	if err != nil || len(list.Items) < 2 {
		t.Errorf("%d Secrets, %v", len(list.Items), err)
	}
	for _, s := range list.Items {
		if s.Size() > recordRoom+recordRoom/10 {
			t.Errorf("one change has the API server store %d bytes", s.Size())
		}
	}
	writes := f.writes()
	if err := f.records.set(t.Context(), longRecord(300, 2002)); err != nil || f.writes() != writes+1 {
		t.Errorf("%v, %d writes", err, f.writes()-writes)
	}
	if rec, err := f.records.get(t.Context(), longRecord(300, 0).Ref); err != nil || len(rec.Unknown[0]) != 2002 {
		t.Errorf("%v, %v", rec, err)
	}
	all(func(i int) error { return f.records.change(t.Context(), recordKey(longRecord(i, 0).Ref), nil) })
	if len(f.installed()) != 0 {
		t.Error("records are left")
	}
}

// A record without a place is refused with the reason, and others go on.
func TestARecordThatIsTooLarge(t *testing.T) {
	f := newRecordsFixture(t)
	if err := f.records.set(t.Context(), longRecord(1, 100)); err != nil {
		t.Fatal(err)
	}
	err := f.records.set(t.Context(), longRecord(2, 2<<20))
	if err == nil || !strings.HasPrefix(err.Error(), "recording a release: its record has 2048 KiB, more than the 900 KiB that fit into a Secret") {
		t.Error(err)
	}
	if err := f.records.set(t.Context(), longRecord(3, 100)); err != nil {
		t.Error(err)
	}
	if err := f.records.set(t.Context(), longRecord(1, 2<<20)); err == nil {
		t.Error("a record grows past its home")
	}
	if diff := cmp.Diff([]string{"m1:apps/m1", "m3:apps/m3"}, f.installed()); diff != "" {
		t.Error(diff)
	}
}
