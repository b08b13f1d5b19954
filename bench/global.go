package main

import (
	"fmt"
	"regexp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// globalValue changes a global value, which one of many charts reads, in the user's config, and looks at what the
// modules cost whose charts do not read it. Counts are the most of all changes.
func (b *bench) globalValue() {
	m := b.thousand()
	r := b.startRelay()
	s := r.begin(m.name, m.tree())
	s.ready()
	w := observe(b, b.client.CoreV1().Secrets(m.namespace()), "owner=helm", func(s *corev1.Secret) []string {
		if s.Labels["status"] != "deployed" {
			return nil
		}
		return []string{s.Name} // of the release, with the number of the revision
	})
	section := func(i int) string { return fmt.Sprintf("%s: %q\n", stampKey, fmt.Sprint(i)) } // 0 is the chart's
	b.check(b.createConfigMap(operatorNamespace, m.name, "bench", "global", map[string]string{"global": section(0)}))
	r.quiet(s)
	var took []time.Duration
	var actions, revisions, requests, others int
	n := b.size(10, 3)
	for i := 1; i <= n; i++ {
		before := w.count()
		r.take()
		looked := s.costs(func() {
			took = append(took, w.after(func() error {
				return b.patchConfigMap(operatorNamespace, m.name, `{"data":{"global":%q}}`, section(i))
			}, fmt.Sprintf("sh.helm.release.v1.%s.v%d", m.reader(), i+1)))
			r.quiet(s)
		}, actionsMetric)[0]
		asked, made := r.take(), w.count()-before
		b.say("change %d: %s, %d releases, %d new revisions, %d requests, %d of them for other modules",
			i, millis(took[i-1]), looked, made, len(asked), forOthers(asked, m.reader()))
		actions, revisions = max(actions, looked), max(revisions, made)
		requests, others = max(requests, len(asked)), max(others, forOthers(asked, m.reader()))
	}
	what := "a global value that one of %d charts reads, changed: releases with a new revision, most of %d"
	b.addExact(fmt.Sprintf(what, m.modules, n), revisions, 1)
	b.addExact("… releases that were looked at", actions, 1)
	b.addExact(fmt.Sprintf("… requests for the other modules, of %d in all", requests), others, 0)
	b.add(fmt.Sprintf("… until the release has its revision, p50 of %d", n), millis(middle(took)), "")
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
