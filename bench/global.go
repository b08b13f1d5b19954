package main

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// globalChange is one change of a global value that one of many charts reads.
type globalChange struct {
	took      time.Duration // until the release has its revision
	actions   int           // releases that Starling had Helm look at
	revisions int           // new ones, of all releases
	requests  int           // to the API server
	others    int           // of these, for modules that do not read the value
}

// measureGlobal changes a global value in the user's config and looks at what the modules
// cost whose charts do not read it.
func measureGlobal(ctx context.Context, b *bench) (err error) {
	m, err := b.thousand(ctx)
	if err != nil {
		return err
	}
	r, err := b.startRelay()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.close()) }()
	back := b.through(r.kubeconfig)
	s, err := b.startStarling(ctx, m.name, m.tree())
	back()
	if err != nil {
		return err
	}
	if err := s.ready(ctx); err != nil {
		return err
	}
	w, err := b.observeReleases(ctx, m.namespace())
	if err != nil {
		return err
	}
	defer w.stop()
	_, err = b.client.CoreV1().ConfigMaps(operatorNamespace).Create(ctx,
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: m.name}, Data: map[string]string{"global": globalValue(0)}}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	if err := s.quiet(ctx, r); err != nil {
		return err
	}
	n := 10
	if b.quick {
		n = 3
	}
	var changes []globalChange
	for i := range n {
		c, err := s.changeGlobal(ctx, r, w, m, i+1)
		if err != nil {
			return err
		}
		b.say("change %d: %s, %d releases, %d new revisions, %d requests, %d of them for other modules",
			i+1, millis(c.took), c.actions, c.revisions, c.requests, c.others)
		changes = append(changes, c)
	}
	b.addGlobal(m, changes)
	return s.stop()
}

// globalValue is the section of the user's config that sets the value; 0 is what the chart
// has without it.
func globalValue(i int) string { return fmt.Sprintf("%s: %q\n", stampKey, fmt.Sprint(i)) }

// changeGlobal makes one change. The release has i revisions before it.
func (s *starling) changeGlobal(ctx context.Context, r *relay, w *witness, m many, i int) (globalChange, error) {
	var c globalChange
	actions, err := s.counted("starling_release_actions_total")
	if err != nil {
		return c, err
	}
	revisions := w.count()
	r.take()
	began := time.Now()
	_, err = s.b.client.CoreV1().ConfigMaps(operatorNamespace).Patch(ctx, m.name, types.MergePatchType,
		fmt.Appendf(nil, `{"data":{"global":%q}}`, globalValue(i)), metav1.PatchOptions{})
	if err != nil {
		return c, err
	}
	seen, err := w.all(ctx, []string{revision(m.reader(), i+1)})
	if err != nil {
		return c, err
	}
	c.took = seen.Sub(began)
	if err := s.quiet(ctx, r); err != nil {
		return c, err
	}
	after, err := s.counted("starling_release_actions_total")
	if err != nil {
		return c, err
	}
	asked := r.take()
	c.actions, c.revisions, c.requests, c.others = after-actions, w.count()-revisions, len(asked), forOthers(asked, m.reader())
	return c, nil
}

// quiet waits until a starling has neither asked the API server anything for a while nor
// done anything with a release.
func (s *starling) quiet(ctx context.Context, r *relay) error {
	for before := -1; ; {
		if err := pause(ctx, time.Second); err != nil {
			return err
		}
		now, err := s.counted("starling_release_actions_total")
		if err != nil || now == before && r.idle() >= time.Second {
			return err
		}
		before = now
	}
}

// inURL finds names of modules.
var inURL = regexp.MustCompile(`app-\d{3,}`)

// forOthers counts the requests that name a module other than this one.
func forOthers(asked []string, module string) int {
	n := 0
	for _, url := range asked {
		if slices.ContainsFunc(inURL.FindAllString(url, -1), func(name string) bool { return name != module }) {
			n++
		}
	}
	return n
}

func (b *bench) addGlobal(m many, changes []globalChange) {
	var took []time.Duration
	var most globalChange
	for _, c := range changes {
		took = append(took, c.took)
		most.actions, most.revisions = max(most.actions, c.actions), max(most.revisions, c.revisions)
		most.requests, most.others = max(most.requests, c.requests), max(most.others, c.others)
	}
	b.table.add(row{
		what: fmt.Sprintf("a global value that one of %d charts reads, changed: releases with a new revision, most of %d",
			m.modules, len(changes)),
		starling: fmt.Sprint(most.revisions), aim: verdict("1", most.revisions == 1),
	})
	b.table.add(row{what: "… releases that were looked at", starling: fmt.Sprint(most.actions), aim: verdict("1", most.actions == 1)})
	b.table.add(row{
		what:     fmt.Sprintf("… requests for the other modules, of %d in all", most.requests),
		starling: fmt.Sprint(most.others), aim: verdict("0", most.others == 0),
	})
	b.table.add(row{what: fmt.Sprintf("… until the release has its revision, p50 of %d", len(changes)), starling: millis(percentile(took, 0.5))})
}
