package faults

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/starling-operator/starling/modules/status"
)

// versioned is [tree] whose hook says of which version it is. So does a hook that is there for its name alone, in the
// status of a process that stands by, too.
func versioned(version int) map[string]string {
	files := maps.Clone(tree)
	files["mirror/module.star"] = strings.Replace(tree["mirror/module.star"], `names = ["out"]`, `names = ["out", "version"]`, 1)
	files["mirror/hooks/mirror.star"] = strings.Replace(tree["mirror/hooks/mirror.star"], "\nhook(", fmt.Sprintf(
		"    k8s.apply({\"apiVersion\": \"v1\", \"kind\": \"ConfigMap\", \"metadata\": {\"name\": \"version\"}, \"data\": {\"version\": \"%[1]d\"}})\n\n"+
			"hook(lambda ctx: None, name = \"v%[1]d\", on = [startup()])\nhook(", version), 1)
	return files
}

// broken are edits that no tree can be used with, each in the file of the hook.
var broken = []string{"def mirror(ctx)\n", "hook(nobody, on = [startup()])\n", "\x00", "hook("}

// Row 13: the tree changes 200 times a minute, each third time into one that is broken, while users work, before
// two replicas. No run is lost, and in the end both go by the last good tree: the one that stands by as well, as
// it has to lead when the tree on disk is broken.
func TestReloadsWithoutEnd(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setting{replicas: 2, tree: versioned(0)})
	w.checks = append(w.checks, w.mirrored, w.children)
	w.begin()
	const hook = "mirror/hooks/mirror.star"
	reloads, version := 20, 0
	if long {
		reloads = 200
	}
	const pause = time.Minute / 200
	for round := range rounds {
		began := time.Now()
		var unseen time.Duration
		ends, changed := make(chan struct{}), 0
		go func() {
			defer close(ends)
			for range reloads {
				if changed++; changed%3 == 0 {
					w.write(map[string]string{hook: broken[changed/3%len(broken)]})
				} else {
					version++
					w.write(map[string]string{hook: versioned(version)[hook]})
				}
				time.Sleep(max(0, time.Duration(changed)*pause-time.Since(began)))
			}
		}()
		for going := true; going; {
			select {
			case <-ends:
				going = false
			default:
				w.changes(2)
				unseen = max(unseen, w.stamp())
			}
		}
		took := time.Since(began)
		// A good one, which both take, and then a broken one, which neither does.
		version++
		w.write(map[string]string{hook: versioned(version)[hook]})
		w.eventually("both go by the last good tree", func() error {
			for i, r := range w.replicas {
				st, err := r.status()
				if err != nil {
					return err
				}
				if !slices.ContainsFunc(st.Hooks, func(h status.Hook) bool { return h.ID == fmt.Sprint("mirror/v", version) }) {
					return fmt.Errorf("replica %d goes by generation %d", i, st.Generation)
				}
			}
			return w.reloaded("")
		})
		w.write(map[string]string{hook: broken[round%len(broken)]})
		w.eventually("both say that the tree is broken", func() error { return w.reloaded(hook) })
		w.checked(version)
		leader, _, err := w.leader()
		w.done(err)
		leader.Stop()
		w.eventually("the other one leads", func() error {
			next, _, err := w.leader()
			if err == nil && next == leader {
				err = fmt.Errorf("it is the same")
			}
			return err
		})
		w.checked(version)
		version++
		w.write(map[string]string{hook: versioned(version)[hook]})
		healed := w.settle()
		w.checked(version)
		t.Logf("round %d: %d changes in %s, %d good ones by now; a change of an input was unseen for %s at most; all was as it should be %s later",
			round, reloads, took.Round(time.Second), version, unseen.Round(time.Millisecond), healed.Round(time.Millisecond))
		if long && unseen > mostUnseen {
			t.Errorf("a change of an input was unseen for %s", unseen)
		}
	}
}

// reloaded says which replica does not say of the tree that it is in force, or, with a text, why it is not.
func (w *world) reloaded(text string) error {
	for i, r := range w.replicas {
		st, err := r.status()
		if err != nil {
			return err
		}
		if (st.ReloadFailed == nil) != (text == "") || st.ReloadFailed != nil && !strings.Contains(st.ReloadFailed.Reason, text) {
			return fmt.Errorf("replica %d says %+v", i, st.ReloadFailed)
		}
	}
	return nil
}

// checked waits until a run of the hook has been of a version of the tree.
func (w *world) checked(version int) {
	w.t.Helper()
	w.input("checked", fmt.Sprint("c", w.stamps, "-", version))
	w.stamp()
	w.eventually(fmt.Sprint("a run is of version ", version), func() error {
		if v := w.data("version")["version"]; v != fmt.Sprint(version) {
			return fmt.Errorf("the last one was of %s", v)
		}
		return nil
	})
}
