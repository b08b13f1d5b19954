package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/starling-operator/starling/e2e/proxy"
)

// Starling is killed at each write of the life of a Module object, and of the Events about it: before
// the write reaches the API server, or before its answer is here. After each part of that life the
// object is the same in both ways.
func TestKilledInTheLifeOfAModuleObject(t *testing.T) {
	t.Parallel()
	lives, killed := make([][]string, 2), make([][]string, 2)
	t.Run("lives", func(t *testing.T) {
		for i, name := range []string{"killedbefore", "killedafter"} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				l := newLifeOf(t, name, i == 1)
				l.live()
				lives[i], killed[i] = l.pictures, l.At()
				t.Logf("killed at %q", l.At())
			})
		}
	})
	if diff := cmp.Diff(lives[0], lives[1]); diff != "" {
		t.Errorf("the lives differ: %s", diff)
	}
	for _, write := range []string{"POST .*/modules", "PATCH .*/status", "PATCH .*/killed[a-z]*", "DELETE .*/killed[a-z]*"} {
		if !slices.ContainsFunc(slices.Concat(killed...), regexp.MustCompile("^"+write+"$").MatchString) {
			t.Errorf("no process was killed at %s", write)
		}
	}
}

// lifeOf is that of one Module object.
type lifeOf struct {
	*fixture
	*proxy.Killer
	name     string
	reaches  bool // the write at which a process is killed reaches the API server
	pictures []string
}

// mostKills is how many processes are killed in one part of a life at most.
const mostKills = 15

// patientKills is how many are killed one write after the other. Two writes may undo each other from one process to the
// next: that a module is uninstalled in a moment, and that it is now. From then on each process gets one write further.
const patientKills = 6

func newLifeOf(t *testing.T, name string, reaches bool) *lifeOf {
	t.Helper()
	f := withObjects(t, shared.Namespace(t), "starling", mirror(name, on), map[string]string{"beside-" + name + "/module.star": on})
	l := &lifeOf{fixture: f, name: name, reaches: reaches}
	l.Killer = newKiller(t, f, func(path string) bool {
		_, object, _ := strings.Cut(path, "/modules/")
		return strings.HasSuffix(path, "/modules") || strings.Split(object, "/")[0] == name || strings.HasSuffix(path, "/events")
	})
	l.AtRest = l.noRelease
	return l
}

// noRelease says that no release is under way: one whose process is killed has another revision afterwards.
func (l *lifeOf) noRelease() bool {
	pending, err := shared.Client.CoreV1().Secrets(l.ns).List(l.t.Context(), metav1.ListOptions{
		LabelSelector: "owner=helm,status in (pending-install,pending-upgrade)",
	})
	return err == nil && len(pending.Items) == 0
}

// live leads the object through its life.
func (l *lifeOf) live() {
	l.t.Helper()
	l.part("it is made", func() { l.start() }, l.shows("Ready", "True", "Released", "revision 1"))
	l.part("a user writes its spec", func() { l.patchObject(l.name, `{"spec":{"values":{"text":"ours"}}}`) },
		l.shows("Ready", "True", "Released", "revision 2"))
	l.part("a user takes off its label, and asks to reconcile", func() {
		l.patchObject(l.name, `{"metadata":{"labels":null,"annotations":{"starling.dev/reconcile":"now"}}}`)
	}, func(o *unstructured.Unstructured) error {
		if len(o.GetAnnotations()) > 0 || len(o.GetLabels()) != 1 {
			return fmt.Errorf("it has annotations %v, labels %v", o.GetAnnotations(), o.GetLabels())
		}
		return l.shows("Ready", "True")(o)
	})
	old, err := l.object(l.name)
	if err != nil {
		l.t.Fatal(err)
	}
	l.part("a user deletes it", l.remove, func(o *unstructured.Unstructured) error {
		if o.GetUID() == old.GetUID() {
			return errors.New("it is still the one before")
		}
		return l.shows("Ready", "True", "Released", "revision 2")(o)
	})
	l.part("a user switches it off", func() { l.patchObject(l.name, `{"spec":{"enabled":false}}`) }, l.shows("Enabled", "False"))
	noRelease(l.t, l.ns, l.name)
	l.part("its module leaves", func() { l.write(map[string]string{l.name: ""}) }, l.shows("Ready", "NoModule"))
	l.part("a user takes back the spec", func() { l.patchObject(l.name, `{"spec":null}`) }, nil)
}

func (l *lifeOf) remove() {
	if err := shared.Dynamic.Resource(moduleResource).Delete(l.t.Context(), l.name, metav1.DeleteOptions{}); err != nil {
		l.t.Fatal(err)
	}
}

// shows is nil for an object whose status is of its spec as it is now, of a module that is at rest, and
// whose conditions, each by its name, hold the texts.
func (l *lifeOf) shows(conditions ...string) func(*unstructured.Unstructured) error {
	conditions = append(conditions, "Reconciling", "status:False")
	return func(o *unstructured.Unstructured) error {
		if seen, _, _ := unstructured.NestedInt64(o.Object, "status", "observedGeneration"); seen != o.GetGeneration() {
			return fmt.Errorf("generation %d was seen, not %d", seen, o.GetGeneration())
		}
		all, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
		for i := 0; i < len(conditions); i += 2 {
			at := slices.IndexFunc(all, func(c any) bool { return c.(map[string]any)["type"] == conditions[i] })
			if at < 0 || !strings.Contains(fmt.Sprint(all[at]), conditions[i+1]) {
				return fmt.Errorf("%s is not %s: %v", conditions[i], conditions[i+1], all)
			}
		}
		return nil
	}
}

// part has something happen, kills one process after the other at its writes until one is left that
// has nothing to write, and keeps how the object is then. Is says when that is so; nil: once there is
// no object.
func (l *lifeOf) part(what string, happens func(), is func(*unstructured.Unstructured) error) {
	l.t.Helper()
	picture := ""
	settled := func() (err error) {
		o, err := l.object(l.name)
		if is == nil && apierrors.IsNotFound(err) {
			picture = "gone"
			return nil
		}
		if err == nil && is == nil {
			err = errors.New("it is there")
		}
		if err == nil {
			err = is(o)
		}
		picture = l.picture(o)
		return err
	}
	at := 1 // the next process is killed one write later, unless that one has reached the API server
	for kills := 0; ; kills++ {
		if kills > mostKills {
			l.t.Fatalf("%s: %d processes were killed, and the next one writes still: %q", what, kills, l.At())
		}
		before := l.KillAt(at, l.reaches, happens)
		l.eventually(what, func() error {
			if l.Killed() > before {
				return nil
			}
			return settled()
		})
		if l.Spare() == before {
			break
		}
		if happens = func() { l.freeLease(); l.start() }; !l.reaches {
			at = max(at, 2)
		}
		if kills >= patientKills {
			at++
		}
	}
	l.pictures = append(l.pictures, what+": "+picture)
}

// picture is an object without times, and with what one life has in the place of another one's.
func (l *lifeOf) picture(o *unstructured.Unstructured) string {
	if o == nil {
		return ""
	}
	o = o.DeepCopy()
	for _, field := range []string{"uid", "resourceVersion", "creationTimestamp", "managedFields"} {
		unstructured.RemoveNestedField(o.Object, "metadata", field)
	}
	data, err := json.MarshalIndent(o.Object, "", " ")
	if err != nil {
		l.t.Fatal(err)
	}
	text := strings.NewReplacer(l.ns, "NS", l.name, "NAME").Replace(string(data))
	return regexp.MustCompile(`"(lastTransitionTime|time)": "[^"]*"`).ReplaceAllString(text, "$1")
}
